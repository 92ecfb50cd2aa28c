"""What to write for RUN where a file was named that is none: a config, a script, a log."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.meant_words.near_files import LOGS, near_of_kind
from hpc_train.config.words import NEWEST
from hpc_train.runs.layout import RunDir
from hpc_train.runs.this_folder import means_another_folders, newest

CONFIGS = (".yaml", ".yml")
_RUN_IS = "RUN is a name, a run id, a run directory or a job id"
_NAME = re.compile(
    r"^name:[ \t]+(?P<quote>[\"']?)(?P<name>[^#\n]+?)(?P=quote)[ \t]*(?:#.*)?$", re.M
)


def run_of_file(file: Path, runs: list[RunDir], folders: Sequence[Path]) -> str:
    """The name of the runs of a config or a script, where it has any; else what RUN is."""
    if file.name.endswith(CONFIGS):
        return run_of_config(file, runs, folders)
    if said := run_of_script(file, runs, folders):
        return said
    checked = ""
    if file.suffix in LOGS:
        checked = f"; hpc-train diagnose {shlex.quote(str(file))} reads a log"
    return f"that is a file: {_RUN_IS}{checked}"


def run_of_absent_file(file: Path) -> str:
    """What to write for RUN in the place of a log that is not there; empty for any other word."""
    near = near_of_kind(file)
    if not near or not near[0].endswith(LOGS):
        return ""
    others = f" (or {near[1]})" if near[1:] else ""
    return f"hpc-train diagnose {shlex.quote(near[0])}{others} reads a log; {_RUN_IS}"


def run_of_script(script: Path, runs: list[RunDir], folders: Sequence[Path]) -> str:
    """The same for a script, whose runs are named as the file unless `name` says otherwise."""
    last = newest([run for run in runs if run.name == script.stem], folders)
    if script.suffix != ".py" or last is None:
        return ""
    if means_another_folders(script.stem, script.stem, last, folders):
        return ""
    return f"that is a script: for RUN write {_word_for(last)}"


def run_of_config(config: Path, runs: list[RunDir], folders: Sequence[Path]) -> str:
    """What to write for RUN in the place of a config: the name of its runs, where it has any."""
    try:
        named = _NAME.search(config.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        named = None
    name = named["name"].strip() if named else ""
    last = newest([run for run in runs if name and run.name == name], folders)
    is_elsewhere = last is not None and means_another_folders(name, name, last, folders)
    if last is not None and not is_elsewhere:
        return f"that is a config: for RUN write {_word_for(last)}"
    here = " of this folder" if last else ""
    none = f"no run{here} has its name, {name}" if name else "RUN is a name, or a run id"
    typed = shlex.quote(str(config))
    first = f"first hpc-train run {typed}, or hpc-train submit {typed}"
    more = f"hpc-train submit --dry-run {typed} checks it"
    if last is not None:  # whose config may be another one: its model is not meant by this file
        more = f"{last.run_id}, of that name, is in {last.path.parent.parent}"
    return f"that is a config, and {none}: {first}; {more}"


def _word_for(run: RunDir) -> str:
    """The name of a run, with its id; the id alone where the name is a word for the newest."""
    if run.name in NEWEST:
        return run.run_id
    return f"{shlex.quote(run.name)} (its newest run: {run.run_id})"
