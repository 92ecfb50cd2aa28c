"""What only the machine can tell of a config: are the classes there, does the Trainer agree."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hpc_train.config.fit.lacking_methods import (
    check_evaluated,
    how_to_write,
    own_names,
)
from hpc_train.config.fit.logger_checks import check_logger
from hpc_train.config.fit.made_folders import check_made_folders
from hpc_train.config.fit.misnamed_methods import renamed
from hpc_train.config.fit.refused_callbacks import refused_callback
from hpc_train.config.fit.sure_refusals import check_refused_by_lightning
from hpc_train.config.gathered import (
    gather,
    is_placeholder,
    is_within,
    tell_together,
    tells_the_classes,
)
from hpc_train.config.keys import FIELDS
from hpc_train.config.load import LoadedConfig
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.class_kind import lacks_method, locate
from hpc_train.config.python_text.classes import ArgumentError, check_class, values_check
from hpc_train.config.python_text.distributions import install_here
from hpc_train.config.python_text.method_signatures import returns_nothing
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.python_text.own_modules import check_hidden
from hpc_train.config.python_text.python_folders import folders_of_variable
from hpc_train.config.schema import Config, EnvConfig
from hpc_train.config.scripts.script_file import check_script
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET, is_object, read_object, wanted_of
from hpc_train.config.submit_from import class_of_its_project, folder_of_module
from hpc_train.config.sweeps.meant_sweep import several_values
from hpc_train.config.trainer_args import NEED_A_LOGGER, check_trainer
from hpc_train.config.yaml_slips.empty_lines import check_empty
from hpc_train.config.yaml_slips.plain_texts import told_unquoted
from hpc_train.errors import ConfigError

# Arguments that a rank gives by itself where a class takes them and the config is silent.
_FILLED_IN: Mapping[str, Sequence[str]] = {
    "data": ("batch_size", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor"),
    "loggers": ("save_dir", "name", "version", "id", "project", "resume", "dir"),
}

_OF_A_FIT = (
    ("model", "training_step"),
    ("model", "configure_optimizers"),
    ("data", "train_dataloader"),
)


def check(
    loaded: LoadedConfig,
    *,
    workdir: Path,
    search_path: Sequence[str] | None = None,
    refused: Sequence[ConfigError] = (),
) -> None:
    """Hold a config against what is installed; reads files, imports nothing of the user's.

    Args:
        loaded: The config.
        workdir: The folder the ranks start in, where the user's modules are.
        search_path: `sys.path` by default.
        refused: What `load` has refused of the same file, told in front of the rest.

    Raises:
        ConfigError: with file and line of the config, and a fix.
    """
    if not tells_the_classes(refused):
        tell_together(refused)
    elsewhere = other_environment(loaded.config.env) or bool(loaded.config.container.image)
    installed = list(sys.path if search_path is None else search_path)
    check_hidden(workdir)
    if loaded.config.script.path:
        tell_together(refused)
        path = [] if elsewhere else [*_own_folders(loaded.config.env, workdir), *installed]
        check_script(loaded.config, workdir, loaded.origins, search_path=path)
        return
    path = search_path_of(loaded.config.env, workdir, installed)
    tell_together([*refused, *_refusals(loaded, workdir, path, installed, elsewhere=elsewhere)])


def _refusals(
    loaded: LoadedConfig,
    workdir: Path,
    path: Sequence[str],
    installed: Sequence[str],
    *,
    elsewhere: bool,
) -> Iterator[ConfigError]:
    """Of the Trainer's arguments, and of each class that is named; two with one fix are one."""
    trainer, origins = loaded.config.trainer, loaded.origins
    look = partial(check_trainer, origins=origins, search_path=installed, config=loaded.config)
    found = gather(look, trainer, "trainer")[1]
    if not elsewhere:
        found += gather(lambda it: _check_strategy(it, origins, path), trainer, "trainer")[1]
    for key, spec in objects_of(loaded.config):
        if not is_placeholder(key, spec) and not is_within(key, found):
            check_one = partial(_check_named, key, loaded, workdir, path, elsewhere=elsewhere)
            found += _of_itself(gather(check_one, spec, key)[1], f"{key}.{_form(spec)}")
    told = found[0].hint if found else ""
    yield from (it for it in found if it is found[0] or it.hint != told or not told)


def _of_itself(refused: Sequence[ConfigError], class_key: str) -> Iterator[ConfigError]:
    """The refusals of one class, without what only follows from those in front.

    It needs an argument which a misspelt one was meant as, and below a section that begins in the
    wrong column stand that section's keys.
    """
    for number, it in enumerate(refused):
        if not number or it.keys != (class_key,):
            yield it
        if any(key.rpartition(".")[2] in FIELDS for key in it.keys):
            return


def _check_strategy(trainer: Mapping[str, Any], origins: Origins, path: Sequence[str]) -> None:
    strategy = str(trainer.get("strategy"))
    if strategy.startswith("deepspeed") and find_module("deepspeed", path)[0] is None:
        hint = f"{install_here('deepspeed')}, or write ddp or fsdp"
        message = f"is {strategy}, and deepspeed is not installed"
        raise origins.error("trainer.strategy", message, hint)


def _check_named(
    key: str,
    loaded: LoadedConfig,
    workdir: Path,
    path: Sequence[str],
    spec: dict[str, Any],
    *,
    elsewhere: bool,
) -> None:
    """Check one of the classes that a config names."""
    check_hidden(workdir, [read_object(spec, key, loaded.origins)[0].partition(".")[0]])
    _check_beside(key, spec, loaded, workdir, path)
    if key.startswith("loggers.") and not elsewhere:
        check_logger(key, spec, loaded, path)
    if wanted_of(key) == "Callback":
        _check_callback(key, spec, loaded, path)
    other = loaded.config.data if key == "model" else loaded.config.model
    beside = str(other.get(CLASS_PATH) or other.get(TARGET) or "")
    _check_object(key, spec, loaded.origins, path, elsewhere=elsewhere, beside=beside)


def point_check(loaded: LoadedConfig, *, workdir: Path) -> Callable[[Config], bool]:
    """Whether model and data take the arguments of a config that differs in their values alone.

    Args:
        loaded: Which `check` has taken; the classes are read once for all that are asked about.
    """
    path = search_path_of(loaded.config.env, workdir, sys.path)
    checks = {}
    for key in ("model", "data"):
        class_path, _ = read_object(getattr(loaded.config, key), key, loaded.origins)
        checks[key] = values_check(class_path, path, _FILLED_IN.get(key, ()))

    def fits(config: Config) -> bool:
        try:
            for key, check_arguments in checks.items():
                check_arguments(read_object(getattr(config, key), key)[1])
        except ArgumentError:
            return False
        return True

    return fits


def check_methods(
    loaded: LoadedConfig, needed: tuple[Sequence[str], str], verb: str, *, workdir: Path
) -> None:
    """Refuse classes whose text tells that they lack what an evaluation calls."""
    path = search_path_of(loaded.config.env, workdir, sys.path)
    check_evaluated(loaded, needed, verb, path)


def check_training(
    loaded: LoadedConfig, *, workdir: Path, refused: Sequence[ConfigError] = ()
) -> None:
    """`check`, and then `check_fit`."""
    check(loaded, workdir=workdir, refused=refused)
    check_fit(loaded, workdir=workdir)


def check_fit(loaded: LoadedConfig, *, workdir: Path) -> None:
    """Refuse classes whose text tells that they lack what every training calls.

    Raises:
        ConfigError: with the class, the method, and one that may be meant.
    """
    if loaded.config.script.path:
        return
    check_made_folders(loaded, workdir=workdir)
    path = search_path_of(loaded.config.env, workdir, sys.path)
    for key, method in _OF_A_FIT:
        class_path, _ = read_object(getattr(loaded.config, key), key, loaded.origins)
        found = locate(class_path, path)
        if line := _lacks_start(found.definition if found else None):
            message = f": {class_path} has an __init__ (line {line}) without super().__init__()"
            raise loaded.origins.error(f"{key}.class_path", message, "make that its first line")
        if found and isinstance(found.definition, ast.ClassDef) and key == "model":
            _check_returns(class_path, found.definition, method, loaded.origins)
        if not found or not lacks_method(class_path, method, path):
            continue
        own = own_names(found)
        if not own - {"__init__"} and not _start_of(found.definition):
            continue  # an empty class gets its methods some other way
        hint = renamed(method, found) or how_to_write(method, found)
        raise loaded.origins.error(
            f"{key}.class_path", f": {class_path} has no {method}, which a training calls", hint
        )
    check_refused_by_lightning(loaded, path)


def _check_returns(
    class_path: str, definition: ast.ClassDef, method: str, origins: Origins
) -> None:
    """Refuse a method whose text tells that Lightning would train nothing for want of a value."""
    if found := returns_nothing(definition, method):
        line, hint = found
        message = f": {class_path} has a {method} (line {line}) that returns nothing"
        raise origins.error("model.class_path", f"{message}, so nothing would be learned", hint)


def _lacks_start(definition: ast.AST | None) -> int:
    """The line of an `__init__` that never calls the one of its base; 0 where there is none."""
    method = _start_of(definition)
    text = " ".join(map(ast.unparse, method.body)) if method else ""
    return 0 if method is None or "__init__" in text or "super(" in text else method.lineno


def _start_of(definition: ast.AST | None) -> ast.FunctionDef | None:
    """The `__init__` of a class; None where it has none, or one that is still to be written."""
    for method in definition.body if isinstance(definition, ast.ClassDef) else ():
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return None if " ".join(map(ast.unparse, method.body)) == "..." else method
    return None


def search_path_of(env: EnvConfig, workdir: Path, installed: Sequence[str]) -> list[str]:
    """Where the ranks find modules, as far as this is known here: the user's folder first."""
    path = [str(workdir), *_own_folders(env, workdir)]
    return path if other_environment(env) else [*path, *installed]


def _check_callback(
    key: str, spec: dict[str, Any], loaded: LoadedConfig, path: Sequence[str]
) -> None:
    class_path, _ = read_object(spec, key, loaded.origins)
    name = class_path.rpartition(".")[2]
    if name in NEED_A_LOGGER and not loaded.config.loggers:
        message = f": {name} refuses to train without a logger, and loggers is empty"
        raise loaded.origins.error(key, message, "write loggers: [csv], or leave it out")
    message, hint = refused_callback(class_path, path)
    if message:
        raise loaded.origins.error(key, message, hint)


def _check_beside(
    key: str, spec: dict[str, Any], loaded: LoadedConfig, workdir: Path, path: Sequence[str]
) -> None:
    """Name the folder to submit from, where the module lies by the config and not here."""
    class_path, _ = read_object(spec, key, loaded.origins)
    module, config = class_path.partition(".")[0], loaded.files[-1]
    if find_module(module, path)[0] is not None:
        return
    more, hint = folder_of_module(module, workdir, config)
    hint = hint or class_of_its_project(class_path, path, wanted_of(key), config)
    if hint:
        message = f": there is no module '{module}' in {workdir}{more}"
        raise loaded.origins.error(f"{key}.{_form(spec)}", message, hint)


def _check_object(
    key: str,
    spec: dict[str, Any],
    origins: Origins,
    path: Sequence[str],
    *,
    elsewhere: bool,
    beside: str,
) -> None:
    form = _form(spec)
    arguments_key = key if TARGET in spec else f"{key}.{INIT_ARGS}"
    class_path, arguments = read_object(spec, key, origins)
    check_empty(class_path, arguments, arguments_key, origins, path)
    filled_in = next((names for start, names in _FILLED_IN.items() if key.startswith(start)), ())
    try:
        check_class(
            class_path,
            arguments,
            search_path=path,
            filled_in=filled_in,
            only_found=elsewhere,
            wanted=wanted_of(key),
            beside=beside,
        )
    except ArgumentError as error:
        given = arguments.get(error.name)
        raise _told_argument(error, key, arguments_key, given, origins) from error
    except ConfigError as error:
        raise origins.error(f"{key}.{form}", f": {error.message}", error.hint) from error


def _told_argument(
    error: ArgumentError, key: str, arguments_key: str, value: Any, origins: Origins
) -> ConfigError:
    """The refusal of an argument's value, with its place."""
    message = error.message if error.message.startswith("is ") else f": {error.message}"
    full = f"{arguments_key}.{error.name}"
    hint = error.hint
    if re.fullmatch(r"write a (?:whole )?number", hint) and key in ("model", "data"):
        hint += several_values(full, value, is_typed=origins.is_typed(full))
    if error.no_texts is not None:
        message, hint = told_unquoted(full, value, error.no_texts, origins, (message, hint))
    form = hint.partition(f"write {error.name}: ")[2]
    if origins.is_typed(full) and form[:1] == "{":
        hint = f"write {shlex.quote(f'{full}={form}')}"
    return origins.error(full, message, hint)


def _form(spec: Mapping[str, Any]) -> str:
    return TARGET if TARGET in spec else CLASS_PATH


def other_environment(env: EnvConfig) -> bool:
    """Whether the ranks may see packages that are not seen here."""
    return bool(env.conda or env.venv or env.modules or env.setup)


def _own_folders(env: EnvConfig, workdir: Path) -> list[str]:
    """Where modules are found by the config's own doing: PYTHONPATH, and its venv."""
    folders = folders_of_variable(env, workdir)
    if env.venv:
        venv = workdir / Path(env.venv).expanduser()
        folders += [str(site) for site in venv.glob("lib/python3*/site-packages")]
    return folders


def objects_of(config: Config) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every class that the config names, with its key, however deep."""
    for key in ("model", "data"):
        yield key, getattr(config, key)
        yield from _nested(getattr(config, key), key)
    yield from _nested(config.trainer, "trainer")
    yield from _nested(config.loggers, "loggers")


def _nested(value: Any, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        below = f"{key}.{name}"
        if is_object(item):
            yield below, item
        if isinstance(item, (dict, list)):
            yield from _nested(item, below)
