"""A training script in place of `model`, `data` and `trainer`; nothing of it is run here."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.config.gathered import tell_together
from hpc_train.config.long_paths import how_to_read
from hpc_train.config.meant_words.near_files import near_scripts
from hpc_train.config.origins import DEFAULT, Origins
from hpc_train.config.python_text.distributions import install_here
from hpc_train.config.python_text.modules import FoundModule
from hpc_train.config.python_text.own_modules import check_first_imports, check_imports
from hpc_train.config.python_text.python_folders import changed_path, folders_of_variable
from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.python_text.submits_on_import import check_submits_nothing
from hpc_train.config.python_text.syntax_words import how_to_correct
from hpc_train.config.read import Source
from hpc_train.config.schema import Config
from hpc_train.config.scripts.cli_options import check_cli
from hpc_train.config.scripts.hf_arguments import check_hf
from hpc_train.config.scripts.hydra_overrides import check_overrides
from hpc_train.config.scripts.joined_arguments import in_a_list
from hpc_train.config.scripts.script_trainers import (
    places_asked_for,
    trainers_for_gpus,
    word_of_old,
)
from hpc_train.config.scripts.self_submitting import check_submits, unconditional

if TYPE_CHECKING:
    from hpc_train.config.scripts.ranks_apart import Apart


def is_script(path: Path) -> bool:
    """Whether what stands in a config's place on the command line is a script."""
    return path.suffix == ".py"


def script_source(path: Path) -> Source:
    """What a config would say that names this script and leaves the rest at its defaults."""
    return Source(path, {"script": {"path": str(path)}}, {})


def check_args(arguments: Any, origins: Origins, key: str = "script.args") -> None:
    """Refuse a list of arguments in which YAML has made something else of a text."""
    if not isinstance(arguments, list):
        typed = ", ".join(arguments.split()) if isinstance(arguments, str) else "--lr, 0.1"
        raise origins.error(key, "is no list", f"write [{typed}]")
    wrong = ((f"{key}.{index}", *_wrong_argument(it)) for index, it in enumerate(arguments))
    tell_together(origins.error(where, said, hint) for where, said, hint in wrong if said)


def _wrong_argument(argument: Any) -> tuple[str, str]:
    """What is wrong with one, and what to do; empty of one that a script can be given."""
    if isinstance(argument, bool) or not isinstance(argument, (str, int, float)):
        return f"is {argument!r} in YAML, and no text", "put it in quotes"
    from hpc_train.config.scripts.script_arguments import OF_EACH_RANK

    if str(argument).partition("=")[0] in OF_EACH_RANK:
        hint = "leave it out: each rank gets its own, by LOCAL_RANK and by this argument"
        return f"is {argument!r}, and each rank has another one", hint
    if isinstance(argument, str) and not _can_be_argument(argument):
        return f"is {argument!r}", "write text in UTF-8 without NUL"
    return "", ""


def _can_be_argument(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # bytes of a command line that are no UTF-8
        return False


def check_script(
    config: Config, workdir: Path, origins: Origins, *, search_path: Sequence[str]
) -> None:
    """Look whether the script can be started.

    Args:
        config: Names it in `script.path`.
        search_path: What the ranks' Python has behind the script's folder, where it is the Python
            that runs here, so that what it cannot read they cannot; empty where it is another.

    Raises:
        ConfigError: it is not there, cannot be read, is no Python, imports what is not there, or
            each of its Trainers asks for more than the run has.
    """
    key, written = "script.path", config.script.path or ""
    _check_filled(config.script.args, origins)
    try:
        source = (workdir / written).read_bytes()
        if search_path:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the script's own business, at each start
                tree = ast.parse(source, filename=written)
            _check_starts(tree, config, workdir, search_path, origins)
            check_submits(tree, config, workdir, origins)
            _check_places(tree, config, origins)
            _check_ranks(tree, config, workdir, search_path, origins)
            _check_old(tree, config, origins)
            _check_calls(tree, config, [str((workdir / written).parent), *search_path], origins)
            for check in (check_cli, check_overrides, check_hf):
                check(tree, config, workdir, search_path, origins)
            _check_parser(tree, config, origins)
            _check_parsed(tree, config, origins)
            _check_starts(tree, config, workdir, search_path, origins, last=True)
    except FileNotFoundError as error:
        hint = near_scripts(written, workdir, origins.of(key).rpartition(":")[0])
        raise origins.error(key, f": there is no file {written}", hint) from error
    except IsADirectoryError as error:
        raise origins.error(key, f": {written} is a folder", "name the file in it") from error
    except OSError as error:
        raise origins.error(
            key, f": {written} cannot be read: {error.strerror}", how_to_read(error)
        ) from error
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise origins.error(
            key, f": {written}{line} is no Python: {what}", how_to_correct(error, source)
        ) from error
    if search_path:
        _check_imports(config, workdir, search_path)


def _check_imports(config: Config, workdir: Path, search_path: Sequence[str]) -> None:
    """Of all that it imports, or where it changes that path itself, of what stands before."""
    file = (workdir / (config.script.path or "")).resolve()
    module, path = FoundModule("__main__", file, ()), [str(file.parent), *search_path]
    own = [str(workdir.resolve()), *folders_of_variable(config.env, workdir)]
    if line := changed_path(file):
        check_first_imports(module, path, line, folders=own)
    else:
        seen: set[Path] = set()
        check_imports(module, path, seen, folders=own)
        check_submits_nothing(seen - {file})


def _check_filled(arguments: Sequence[Any], origins: Origins) -> None:
    """Refuse the place of a sweep's value that no sweep fills: `--lr {lr}`, `model.lr={lr}`.

    By itself or behind another name it may be the script's own: `--filename {epoch}`.
    """
    before = ""
    for index, word in enumerate(map(str, arguments)):
        option, equals, value = word.rpartition("=") if not word.startswith("{") else ("", "", word)
        option = option if equals else before
        before = word if word.startswith("-") else ""
        found = re.fullmatch(r"\{([A-Za-z_][\w.]*)\}", value)
        last = option.lstrip("-").replace("-", "_").rpartition(".")[2]
        if found and last == found[1].rpartition(".")[2]:
            raise origins.error(
                f"script.args.{index}",
                f"is {word}, and no sweep fills it",
                f"write --sweep {found[1]}=A,B, or the value",
            )


def _check_starts(
    tree: ast.Module,
    config: Config,
    workdir: Path,
    search_path: Sequence[str],
    origins: Origins,
    *,
    last: bool = False,
) -> None:
    """What keeps it from starting at all; `last` of all checks, what keeps it from training."""
    if config.script.may_take_no_steps:
        return
    from hpc_train.config.scripts.script_starts import check_starts, check_trainer_is_used

    file = (workdir / (config.script.path or "")).resolve()
    check = check_trainer_is_used if last else check_starts
    check(tree, file, [str(file.parent), *search_path], origins)


def _check_parser(tree: ast.Module, config: Config, origins: Origins) -> None:
    arguments = [str(word) for word in config.script.args]
    if any("{" in it for it in arguments):
        return  # {key} is filled in by a sweep
    from hpc_train.config.scripts.script_arguments import refused_arguments

    said, hint = refused_arguments(tree, arguments)
    if said:
        if not origins.is_typed("script.args") and origins.of("script.args") != DEFAULT:
            hint = in_a_list(hint)
        raise origins.error("script.args", f": {config.script.path} refuses: {said}", hint)
    if not config.script.resume:
        return
    from hpc_train.config.scripts.resume_arguments import refused_resume

    said, hint = refused_resume(tree, config.script, origins)
    if said:
        where = f": {config.script.path} refuses them, as a job that follows gives them: {said}"
        raise origins.error("script.resume.args", where, hint)


def _check_parsed(tree: ast.Module, config: Config, origins: Origins) -> None:
    from hpc_train.config.scripts.parsed_names import unparsed_name

    if wrong := unparsed_name(tree):
        line, said, hint = wrong
        raise origins.error("script.path", f": {config.script.path}:{line} {said}", hint)


def _check_places(tree: ast.Module, config: Config, origins: Origins) -> None:
    """Refuse a Trainer or a Fabric for more GPUs or nodes than there are; all of a call at once."""
    slurm, path = config.slurm, config.script.path
    given = {"num_nodes": ("--nodes", slurm.nodes), "devices": ("--gpus", slurm.gpus_per_node)}
    wrong: dict[tuple[int, str], list[tuple[str, int]]] = {}
    for name, (asked, line, of) in places_asked_for(tree).items():
        if asked > given[name][1]:
            wrong.setdefault((line, of), []).append((name, asked))
    by_cpu = slurm.gpus_per_node and config.script.accelerator != "cpu"
    errors = []
    for (line, of), many in wrong.items():
        asks = ", ".join(f"{name}={asked}" for name, asked in many)
        has = str(given[many[0][0]][1])
        if len(many) > 1:
            gpus, nodes = slurm.gpus_per_node, slurm.nodes
            has = f"{gpus} device{'s'[: gpus != 1]} on {nodes} node{'s'[: nodes != 1]}"
        options = " ".join(f"{given[name][0]} {asked}" for name, asked in reversed(many))
        out = "both" if len(many) > 1 else many[0][0]
        cpus = "; without GPUs add script.accelerator=cpu" if by_cpu and "devices" in asks else ""
        said = f": {path}:{line} asks for {of}({asks}), and this run has {has}"
        hint = f"submit it with {options}, or leave {out} out of the {of}{cpus}"
        errors.append(origins.error("script.path", said, hint))
    tell_together(errors)


def _check_ranks(
    tree: ast.Module, config: Config, workdir: Path, search_path: Sequence[str], origins: Origins
) -> None:
    """Refuse ranks that would all do the same, each by itself, and a Session that keeps nothing."""
    from hpc_train.config.scripts.session_calls import unrestored

    apart = ranks_apart(tree, config, workdir, search_path)
    if apart is not None and apart.is_sure:
        said = f": {config.script.path}:{apart.line} {apart.said}"
        raise origins.error("script.path", said, apart.hint)
    file, path, _ = _run_by(config, workdir, search_path)
    if lacking := unrestored(tree, file, path):
        line, said, hint = lacking
        raise origins.error("script.path", f": {config.script.path}:{line} {said}", hint)


def ranks_apart(
    tree: ast.Module, config: Config, workdir: Path, search_path: Sequence[str]
) -> Apart | None:
    """What is to be said of a script whose ranks average nothing; see `trained_apart`."""
    from hpc_train.config.scripts.ranks_apart import trained_apart
    from hpc_train.config.scripts.single_process import trained_alone
    from hpc_train.config.scripts.unlaunched_fabrics import unlaunched_fabric

    file, path, ranks = _run_by(config, workdir, search_path)
    apart = trained_apart(tree, file, path, ranks=ranks)
    apart = apart or unlaunched_fabric(tree, file, path, ranks=ranks)
    if apart is not None or config.script.may_take_no_steps:
        return apart
    return trained_alone(tree, file, path, ranks=ranks)


def data_of_ranks(
    tree: ast.Module, config: Config, workdir: Path, search_path: Sequence[str]
) -> tuple[int, str, str] | None:
    """What is to be said of a script whose ranks each take all samples; see `data_for_all`."""
    from hpc_train.config.scripts.unshared_data import data_for_all

    file, path, ranks = _run_by(config, workdir, search_path)
    return data_for_all(tree, file, path, ranks=ranks)


def module_apart(
    tree: ast.Module, config: Config, workdir: Path, search_path: Sequence[str]
) -> tuple[int, str, str] | None:
    """What is to be said of a module that no rank shares, beside one that all do."""
    from hpc_train.config.python_text.modules import read_names
    from hpc_train.config.scripts.unwrapped_modules import unwrapped_modules

    file, path, ranks = _run_by(config, workdir, search_path)
    return unwrapped_modules(tree, read_names(file), file, path, ranks=ranks)


def unshared_session(
    tree: ast.Module, config: Config, workdir: Path, search_path: Sequence[str]
) -> tuple[int, str, str] | None:
    """What is to be said of a script with a Session and data of its own; see `undrawn`."""
    from hpc_train.config.scripts.session_calls import undrawn

    file, path, ranks = _run_by(config, workdir, search_path)
    return undrawn(tree, file, path, ranks=ranks)


def _run_by(
    config: Config, workdir: Path, search_path: Sequence[str]
) -> tuple[Path, list[str], int]:
    """The script, what it imports from, and how many ranks run it: one where it starts others."""
    file = (workdir / (config.script.path or "")).resolve()
    return file, [str(file.parent), *search_path], ranks_of(config)


def ranks_of(config: Config) -> int:
    """How many run the script: one where it starts the others."""
    is_alone = config.script.launcher == "none"
    return 1 if is_alone else config.slurm.nodes * config.slurm.gpus_per_node


def line_for_gpus(file: Path) -> tuple[int, str] | None:
    """The line of a Trainer or a Fabric for GPUs, and which it is, where no other is made."""
    tree = script_tree(file)
    return trainers_for_gpus(tree, list(unconditional(tree.body))) if tree is not None else None


def _check_old(tree: ast.Module, config: Config, origins: Origins) -> None:
    """Refuse what Lightning 2 has dropped, and a strategy that starts ranks beside ours."""
    if config.script.launcher == "none":
        return  # its one process may start them
    from hpc_train.config.scripts.spawned_ranks import sure_spawn

    slurm = config.slurm
    if spawned := sure_spawn(tree, nodes=slurm.nodes, gpus=slurm.gpus_per_node):
        line, said, fix = spawned
        raise origins.error("script.path", f": {config.script.path}:{line} {said}", fix)
    if found := word_of_old(tree, list(unconditional(tree.body))):
        line, word, fix = found
        said = f": {config.script.path}:{line} has {word}, which cannot be here or in Lightning 2"
        raise origins.error("script.path", said, fix)


def _check_calls(
    tree: ast.Module, config: Config, search_path: Sequence[str], origins: Origins
) -> None:
    """Refuse a class for an object, LightningCLI without its parser, an unknown argument."""
    from hpc_train.config.fit.assigned_properties import made_by_script
    from hpc_train.config.python_text.bare_methods import bare_methods
    from hpc_train.config.scripts.script_call_arguments import sure_calls, unknown_argument
    from hpc_train.config.scripts.script_calls import class_that_is_fitted, cli_without_parser
    from hpc_train.config.scripts.script_trainer_calls import ScriptText, wrong_calls

    path, run = config.script.path, list(unconditional(tree.body))
    if found := class_that_is_fitted(tree, run, search_path):
        line, method, name = found
        said = f": {path}:{line} gives {method} the class {name}, and no object of it"
        raise origins.error("script.path", said, f"write {name}(...) there")
    if line := cli_without_parser(tree, run, search_path) or 0:
        said = f": {path}:{line} needs jsonargparse for LightningCLI, and it is not installed"
        raise origins.error("script.path", said, install_here("'jsonargparse[signatures]'"))
    file = Path(search_path[0], Path(path or "").name)
    if wrong := unknown_argument(tree, file, search_path):
        line, said, hint = wrong
        raise origins.error("script.path", f": {path}:{line} {said}", hint)
    on_cpu = config.script.accelerator == "cpu"
    text = ScriptText(
        tree=tree,
        file=file,
        search_path=search_path,
        arguments=[str(it) for it in config.script.args],
        on_cpu=on_cpu,
    )
    calls = wrong_calls(text) if config.script.launcher != "none" else ()
    if told := sorted([*bare_methods(tree), *calls]):
        errors = [
            origins.error("script.path", f": {path}:{line} {said}", fix) for line, said, fix in told
        ]
        errors[0].others = tuple(errors[1:])
        raise errors[0]
    if made := made_by_script(tree, sure_calls(tree), file, search_path):
        raise origins.error("script.path", f": {made[0]}", made[1])
