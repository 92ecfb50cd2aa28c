"""What is typed for a run in a next command: its id, or its folder where no id leads to it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from hpc_train.runs.copies import origin_of
from hpc_train.runs.known_places import roots
from hpc_train.runs.layout import RunDir


def run_word(folder: Path | str) -> str:
    """The word for a run or a sweep, quoted for a shell."""
    return shlex.quote(plain_word(folder))


def plain_word(folder: Path | str) -> str:
    """The same, not quoted.

    Its id, as long as runs are looked for where it lies. Its folder, where it was moved to or named
    by --runs-dir another place, and for a copy, whose id is that of the run that it copies.
    """
    path = Path(folder)
    origin = origin_of(RunDir(path))
    is_told_apart = origin is None or origin.name != path.name
    return path.name if is_told_apart and _is_looked_at(path) else str(path.absolute())


def _is_looked_at(path: Path) -> bool:
    """Whether the id of a run leads to this folder; also of one that is gone, which nothing does.

    The folder of a Session's run lies in none of a name.
    """
    if not path.is_dir():
        return True
    of_session = RunDir(path, named=False).session.exists()
    place = path.parent if of_session else path.parent.parent
    return any(place == known or _is_same(place, known) for known in roots(os.environ, Path.cwd()))


def _is_same(place: Path, known: Path) -> bool:
    try:
        return place.samefile(known)
    except OSError:
        return False
