"""A run's folder that was copied, as by `cp -r`, while the run itself is still where it was."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.runs.atomic import write_text
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
    known = ((run.path, origin_of(run)) for run in doubtful)
    return {path: origin.name for path, origin in known if origin}


def without_copies(runs: Sequence[RunDir]) -> list[RunDir]:
    """Those that a word means, of the runs that answer to it: no copy of another one of them."""
    if not runs[1:]:
        return list(runs)
    copies, there = ids_of_origins(runs), {run.path for run in runs}
    rest = [run for run in runs if run.path not in copies or origin_of(run) not in there]
    return rest or list(runs)


def origin_of(run: RunDir) -> Path | None:
    """The folder of the run that it is or was a copy of, while that run is there.

    In difference to `copied_from` also of a copy that has gone on by itself: it has jobs of its
    own, and shares its id with that run all the same.
    """
    return copied_from(run) or next(_noted(run), None)


def note_origin(run: RunDir) -> None:
    """Keep what a copy is a copy of, as it goes on by itself with a script of its own."""
    if origin := copied_from(run):
        write_text(run.copy_of, f"{_lines(run)}{origin}\n")


def _noted(run: RunDir) -> Iterator[Path]:
    """The runs that it is noted to be a copy of, the newest first; a copy of a copy has several."""
    for line in reversed(_lines(run).splitlines()):
        origin = Path(line)
        try:
            if origin != run.path and _is_another_of(origin, run):
                yield origin
        except OSError:
            continue


def _lines(run: RunDir) -> str:
    try:
        return run.copy_of.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def copied_from(run: RunDir) -> Path | None:
    """The folder of the run that it is a copy of, while that run is there; None of all others.

    Such a copy has no job of its own. One that was resumed has, see `origin_of`.
    """
    origin = folder_in_script(run)
    if origin is None or origin == run.path:
        return None
    try:
        return origin if _is_another_of(origin, run) else None
    except OSError:
        return None


def _is_another_of(origin: Path, run: RunDir) -> bool:
    """Whether it is another folder with the same history at its begin."""
    return not origin.samefile(run.path) and _begins(RunDir(origin)) == _begins(run)


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
