"""A run's folder that was copied, as by `cp -r`, while the run itself is still where it was."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hpc_train.runs.layout import RunDir

# In the script of a run, which `resume` writes anew: a copy that goes on is a run of its own.
_OWN_FOLDER = re.compile(r" --run-dir (?P<folder>.+?) --plan ")
# As a run's folder is called when it is made, or as a job is; others may be copies.
_GIVEN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}(?:-\d+)?\Z|[\d_]+\Z")


def ids_of_origins(runs: Sequence[RunDir]) -> dict[Path, str]:
    """Of those that are copies: folder -> the id of the run itself.

    Scripts are read only of runs that share an id, or have one that none is given.
    """
    ids = Counter(run.run_id for run in runs)
    doubtful = (run for run in runs if ids[run.run_id] > 1 or not _GIVEN_ID.match(run.run_id))
    known = ((run.path, copied_from(run)) for run in doubtful)
    return {path: origin.name for path, origin in known if origin}


def copied_from(run: RunDir) -> Path | None:
    """The folder of the run that it is a copy of, while that run is there; None of all others."""
    try:
        found = _OWN_FOLDER.search(run.script.read_text(encoding="utf-8", errors="replace"))
        words = shlex.split(found["folder"]) if found else []
        if len(words) != 1 or (origin := Path(words[0])) == run.path:
            return None
        is_same = _begins(RunDir(origin)) == _begins(run)
        return None if origin.samefile(run.path) or not is_same else origin
    except (OSError, ValueError):
        return None


def folder_in_script(run: RunDir) -> Path | None:
    """Where its newest submission has it, as its script says; None where that does not tell."""
    try:
        found = _OWN_FOLDER.search(run.script.read_text(encoding="utf-8", errors="replace"))
        words = shlex.split(found["folder"]) if found else []
    except (OSError, ValueError):
        return None
    return Path(words[0]) if len(words) == 1 and words[0].startswith("/") else None


def _begins(run: RunDir) -> bytes:
    """The first line of its history; no two runs have the same."""
    with run.events.open("rb") as stream:
        return stream.readline()
