"""Runs whose folder is not where their job has it: moved to another place, or removed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.backends.rendered_job import names_of_script, refuse_ended
from hpc_train.errors import NoSuchRunError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import find_run
from hpc_train.slurm.command import is_available
from hpc_train.slurm.jobs import live_scripts


def moved_run(word: str, folders: Sequence[Path]) -> tuple[RunDir, Path] | None:
    """The run of a job that is alive, where it lies now, and where it was under that name.

    Args:
        word: The name that its folder had, which no run answers to.
        folders: Of runs, in which it is looked for by its id.
    """
    for _, run_id, was in _gone(word, live_scripts() if is_available("squeue") else {}):
        try:
            return find_run(run_id, folders), was
        except NoSuchRunError:
            continue
    return None


def refuse_removed(word: str) -> None:
    """Raise for the name or the id of a run whose job has ended, and whose folder is gone.

    Else nothing, also where Slurm has forgotten that job.
    """
    if re.fullmatch(r"\d+(_\d+)?", word) or not is_available("squeue"):
        return  # by the number it is told anyway
    found = [job_id for job_id, _, _ in _gone(word, live_scripts(ended_too=True))]
    if found:
        refuse_ended(max(found, key=lambda it: [*map(int, re.findall(r"\d+", it))]))


def _gone(word: str, scripts: dict[str, str]) -> Iterator[tuple[str, str, Path]]:
    """Jobs of such a name or id, the ids of their runs, and the folders, which are not there."""
    for job_id, path in scripts.items():
        names = names_of_script(script := Path(path))
        if names and word in names and script.is_absolute():
            folder = next(it for it in script.parents if it.name == names[1])
            if not folder.exists():
                yield job_id, names[1], folder
