"""What is typed for a script's LightningCLI: its command, its files, and options of its classes.

jsonargparse, by which LightningCLI reads its options, refuses the first of them once the job runs.
`LightningCLI(Net, Data)` has the arguments of these classes under `--model.` and `--data.`, and
those of the Trainer under `--trainer.` (LightningCLI's manual, "Configure hyperparameters from the
CLI").
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hpc_train.config.meant_words.near_files import near_files
from hpc_train.config.origins import DEFAULT, Origins
from hpc_train.config.python_text.classes import parameters_of
from hpc_train.config.python_text.modules import find_module, read_names
from hpc_train.config.scripts.script_calls import (
    absent_cli_config,
    cli_configs,
    cli_without_command,
    sure_cli_call,
)
from hpc_train.config.scripts.script_trainers import RUNS
from hpc_train.config.scripts.script_words import FIRST_BEHIND
from hpc_train.config.trainer_args import trainer_parameters
from hpc_train.config.words import did_you_mean, near_words

if TYPE_CHECKING:
    from hpc_train.config.schema import Config


@dataclass(frozen=True)
class _Option:
    """An argument of a section, as it is written.

    Attributes:
        written: `--model.lr`, or `model.lr` of a file.
        place: The file, as `cli.yaml: `; empty where it was typed.
    """

    written: str
    section: str
    name: str
    place: str = ""


_OPTION = re.compile(r"--(?P<section>model|data|trainer)\.(?P<name>[A-Za-z]\w*)(?=[.=+]|\Z)")
_PLACES = ("model_class", "datamodule_class")  # the first arguments of LightningCLI
_SECTIONS = dict(zip(("model", "data"), _PLACES, strict=True))
_NOT_ITS_OWN = ("help", "class_path", "init_args", "dict_kwargs")  # of jsonargparse
# Where a subclass is named, its arguments stand below init_args.
_OPEN = ("subclass_mode_model", "subclass_mode_data", "parser_class", "args")
_MOST_SHOWN = 10


def check_cli(
    tree: ast.Module,
    config: Config,
    workdir: Path,
    search_path: Sequence[str],
    origins: Origins,
) -> None:
    """Refuse an unknown option, a file that is not there, no command where no variable names one.

    Args:
        tree: The script.
        workdir: Where it is started.
        search_path: What the ranks' Python has behind the script's folder.

    Raises:
        ConfigError: with what to write.
    """
    arguments = [str(it) for it in config.script.args]
    if absent := absent_cli_config(tree, arguments, workdir):
        said = f": {config.script.path} is given --config {absent}, and there is no such file"
        place = Path(absent) if workdir == Path.cwd() else workdir / absent
        raise origins.error("script.args", said, near_files(place))
    line = cli_without_command(tree, arguments, workdir)
    if line is None or any("JSONARGPARSE" in it for it in (*os.environ, *config.env.variables)):
        file = workdir / str(config.script.path)
        path = [str(file.parent), *search_path]
        if unknown := unknown_cli_option(tree, arguments, file, path, workdir):
            raise origins.error(
                "script.args", f": {config.script.path} refuses {unknown[0]}", unknown[1]
            )
        return
    said = f": {config.script.path}:{line} calls LightningCLI, which wants a command: fit, validate"
    hint = f"{FIRST_BEHIND}fit"
    if arguments and not arguments[0].startswith("-"):
        near = near_words(arguments[0], RUNS) or ["fit"]
        hint = f"write {near[0]} in place of {arguments[0]}"
    elif not origins.is_typed("script.args") and origins.of("script.args") != DEFAULT:
        hint = f"write script.args: [{', '.join(['fit', *arguments])}]"
    raise origins.error("script.path", f"{said}, test or predict", hint)


def unknown_cli_option(
    tree: ast.Module,
    arguments: Sequence[str],
    file: Path,
    search_path: Sequence[str],
    folder: Path,
) -> tuple[str, str] | None:
    """What is wrong with the first such option, and what to write; None without one.

    Args:
        tree: The script.
        arguments: Of the script, as they are typed.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
        folder: Where it is started.
    """
    call = sure_cli_call(tree)
    if call is None or "argv" in ast.unparse(tree):
        return None
    given: dict[str | None, ast.expr] = {it.arg: it.value for it in call.keywords}
    given |= dict(zip(_PLACES, call.args, strict=False))
    if None in given or not given.keys().isdisjoint(_OPEN):
        return None
    taken: dict[str, tuple[str, Sequence[str] | None]] = {}
    for it in (*_typed(arguments), *_in_files(arguments, folder)):
        if it.name in _NOT_ITS_OWN:
            continue
        if it.section not in taken:
            taken[it.section] = _taken(it.section, given, file, search_path)
        what, names = taken[it.section]
        if names is not None and it.name not in names:
            prefix = it.written.removesuffix(it.name)
            near = did_you_mean(it.name, names, prefix=prefix)
            shown = ", ".join([*names[:_MOST_SHOWN], *["..."] * (len(names) > _MOST_SHOWN)])
            hint = near or f"it takes {shown or 'nothing'}"
            return f"{it.place}{it.written}: {what} takes no {it.name}", hint
    return _without_dashes(arguments)


def _typed(arguments: Sequence[str]) -> Iterator[_Option]:
    for word in arguments:
        if found := _OPTION.match(word):
            yield _Option(found[0], found["section"], found["name"])


def _in_files(arguments: Sequence[str], folder: Path) -> Iterator[_Option]:
    """The keys of each `--config`, also of those below the command's name."""
    for given in cli_configs(arguments):
        try:
            text = (folder / given).read_text("utf-8")
            held = yaml.safe_load(text) if (folder / given).suffix in (".yaml", ".yml") else None
        except (OSError, ValueError, yaml.YAMLError):
            continue  # told elsewhere, or by the script
        wholes = [held, *(held.get(it) for it in RUNS)] if isinstance(held, Mapping) else []
        for section in ("model", "data", "trainer"):
            for whole in (it for it in wholes if isinstance(it, Mapping)):
                keys = whole.get(section)
                named = [it for it in keys if type(it) is str] if isinstance(keys, Mapping) else []
                yield from (_Option(f"{section}.{it}", section, it, f"{given}: ") for it in named)


def _without_dashes(arguments: Sequence[str]) -> tuple[str, str] | None:
    """`model.lr=0.1`, Hydra's way, where it is no value of the option in front of it."""
    for before, word in pairwise(("", *arguments)):
        is_value = before.startswith("-") and "=" not in before
        if _OPTION.match(f"--{word}") and "=" in word and not is_value:
            return f"{word}: LightningCLI takes options with dashes", f"write --{word}"
    return None


def _taken(
    section: str,
    given: Mapping[str | None, ast.expr],
    file: Path,
    search_path: Sequence[str],
) -> tuple[str, Sequence[str] | None]:
    """What takes the options of a section, and which; None where the text does not tell."""
    if section == "trainer":
        return "Lightning's Trainer", list(trainer_parameters(search_path)) or None
    named = given.get(_SECTIONS[section])
    if not isinstance(named, ast.Name):
        return "", None
    names = read_names(file)
    if named.id in names.definitions:
        found = parameters_of(named.id, names)
        return named.id, None if found is None else found.names
    module, _, kind = names.imports.get(named.id, "").rpartition(".")
    where = find_module(module, search_path)[0] if module and module[0] != "." else None
    if where is None or where.file is None:
        return "", None
    found = parameters_of(kind, read_names(where.file))
    return f"{module}.{kind}", None if found is None else found.names
