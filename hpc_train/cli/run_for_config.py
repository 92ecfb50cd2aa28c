"""A run, a sweep or a bench that was typed where a command takes a config."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

import click

from hpc_train.backends.moved_run import config_file
from hpc_train.backends.submit_again import as_typed_here, is_of_script, submit_again
from hpc_train.codec import read_object
from hpc_train.errors import HpcTrainError, UsageError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import folders
from hpc_train.runs.run_as_config import named_run
from hpc_train.runs.run_word import run_word
from hpc_train.runs.sweep_dir import SweepDir, find_sweep
from hpc_train.runs.this_folder import is_own

_BEGIN = ("submit", "run", "launch", "render")  # others look at a config


def refuse_run(word: Path) -> None:
    """Refuse it, by a word for it or its folder; a name of another folder's may be a file's.

    Raises:
        UsageError: with what goes on with it and what trains the same anew, or with its config.
    """
    whole = _sweep(str(word))
    if whole and whole.bench.exists():
        shows = f"hpc-train bench {run_word(whole.path)} --show prints its table"
        raise UsageError(f"{word} is a bench that was made, and no config", shows)
    run = RunDir(whole.path) if whole else named_run(word) or RunDir(word.absolute())
    if not whole and not run.plan.is_file():
        return
    what = "a sweep" if whole else "a run"
    command = click.get_current_context()
    name = command.command_path.partition(" ")[2]
    if name in _BEGIN:
        anew = submit_again(run)
        hint = f"hpc-train resume {run_word(run.path)} goes on with it; {anew} begins anew"
    else:
        hint = f"{name} takes a config: {command.command_path} {_config_of(run)}"
    if name == "bench" and (shows := _table_of(run)):
        hint = f"{hint}; {shows}"
    named = "" if str(word) == run.name else f" ({run.name})"
    raise UsageError(f"{word} is {what}{named}, and no config", hint)


def _sweep(word: str) -> SweepDir | None:
    where = folders(None)
    with suppress(HpcTrainError):
        found = find_sweep(word, where)
        return found if found and (word != found.name or is_own(found, where)) else None
    return None


def _config_of(run: RunDir) -> str:
    """The file that it was submitted with, a script with its arguments; its own copy without."""
    kept = read_object(run.environment).get("config") or {}
    file = config_file(run)
    if not Path(file).is_file():
        return shlex.quote(as_typed_here(str(run.config))) if run.config.is_file() else "CFG"
    words = [str(it) for it in kept.get("words") or ()]
    behind = words[words.index("--") :] if is_of_script(run) and "--" in words else []
    return shlex.join([as_typed_here(file), *behind])


def _table_of(run: RunDir) -> str:
    """What shows the newest bench of a training; empty where it has none."""
    from hpc_train.benches import find_bench

    with suppress(HpcTrainError):
        find_bench(run.name)
        return f"its newest bench: hpc-train bench {shlex.quote(run.name)} --show"
    return ""
