"""All runs at a glance: a row is kept with what it follows from, and made anew when that changed.

A thousand diaries take a third of a second to read, and most of them have ended. So the size of the
diary (it only ever grows), what Slurm said of the job, and the row itself are kept in the user's
state folder; what is not kept, or no longer as it was, is looked at properly. Only then more than
`os` is imported, so that `hpc-train list` takes little longer than squeue and the start of Python.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hpc_train import __version__
from hpc_train.report.columns import LIST_HEADER
from hpc_train.slurm.squeue import Asked, cells_of
from hpc_train.store.folders import state_folder

__all__ = ["Kept", "newest_run", "rows"]

# Size of the diary in bytes; state, reason and nodes of the job by Slurm's words, None for a run
# that ended by its own; time of submission; id of the job; the row.
Kept = tuple[int, "list[str] | None", float, str, "list[str]"]

STEP = LIST_HEADER.index("STEP")  # the one cell that moves while diary and Slurm's words rest
NEVER = -1  # the size of no diary: such a row is made anew each time
NAME_MAX = 255  # bytes of a file's name (limits.h)
FORMAT = f"1 {__version__} {sys.implementation.cache_tag}"  # marshal differs between Pythons


def rows(environ: Mapping[str, str], folders: Sequence[str]) -> list[list[str]]:
    """The rows of `hpc-train list`, the newest run first, by at most one squeue.

    Args:
        environ: Says where the user's state folder is.
        folders: Absolute paths of folders of runs.
    """
    return [row for *_, row in _newest_first(look(environ, folders))]


def newest_run(environ: Mapping[str, str], folders: Sequence[str]) -> str | None:
    """Path of the run that was submitted last; None where there is no run. Slurm is not asked."""
    memo = _memo(environ, folders)
    submitted = {
        path: memo[path][2] if path in memo else _first_time(path)
        for folder in folders
        for path, _ in _sizes(folder)
    }
    return max(submitted, key=submitted.__getitem__, default=None)


def look(environ: Mapping[str, str], folders: Sequence[str]) -> dict[str, Kept]:
    """What is known of each run, by its path."""
    memo = _memo(environ, folders)
    asked = _ask(memo.values())  # it answers while the diaries are looked at
    sizes = {folder: dict(_sizes(folder)) for folder in folders}
    known = {path: size for found in sizes.values() for path, size in found.items()}
    rests = {path: memo[path] for path, size in known.items() if _is_of(memo, path, size)}
    words = _words(asked)
    for path, one in list(rests.items()):
        if one[1] is None:
            continue
        if words.get(one[3]) == one[1]:
            rests[path] = _moved(path, one)
        else:
            del rests[path]
    if len(rests) == len(known):
        return rests
    changed = {path: size for path, size in known.items() if path not in rests}
    seen = rests | _see(changed, asked)
    for folder, found in sizes.items():
        _write(_file(environ, folder), {path: seen[path] for path in found})
    return {path: seen[path] for path in known}


def _memo(environ: Mapping[str, str], folders: Sequence[str]) -> dict[str, Kept]:
    memo: dict[str, Kept] = {}
    for folder in folders:
        memo |= _read(_file(environ, folder))
    return memo


def _newest_first(found: Mapping[str, Kept]) -> list[Kept]:
    return sorted(found.values(), key=lambda one: one[2], reverse=True)


def _is_of(memo: Mapping[str, Kept], path: str, size: int) -> bool:
    return path in memo and memo[path][0] == size


def _ask(memo: Iterable[Kept]) -> Asked | None:
    """Ask squeue for the jobs that were open; None where there is none of them, or no squeue."""
    jobs = [job_id for _, words, _, job_id, _ in memo if words is not None]
    try:
        return Asked(jobs) if jobs else None
    except OSError:
        return None


def _words(asked: Asked | None) -> dict[str, list[str]]:
    """State, reason and nodes by job."""
    lines = asked.said().splitlines() if asked else []
    return {cells[0]: cells[1:4] for cells in map(cells_of, lines) if cells}


def _moved(path: str, one: Kept) -> Kept:
    """With the step that the ranks have come to since; a job that waits has not moved."""
    size, words, submitted, job_id, row = one
    if words and words[0] == "PENDING":
        return one
    beat = _first_number(f"{path}/latest/heartbeat/rank-0.json", '"step": ')
    step = max(int(row[STEP]), int(beat))
    return size, words, submitted, job_id, [*row[:STEP], str(step), *row[STEP + 1 :]]


def _first_time(path: str) -> float:
    """When the first line of a run's diary was written."""
    return _first_number(f"{path}/events.jsonl", '"time": ')


def _first_number(file: str, name: str) -> float:
    """The number behind a name in our own JSON, or 0; importing json takes as long as all this."""
    try:
        with open(file, encoding="utf-8") as stream:  # noqa: PTH123
            return float(stream.readline().partition(name)[2].partition(",")[0])
    except (FileNotFoundError, ValueError):
        return 0.0


def _see(changed: Mapping[str, int], asked: Asked | None) -> dict[str, Kept]:
    """Look at some runs properly."""
    import time
    from pathlib import Path

    from hpc_train.backends.observe import Seen, see
    from hpc_train.report.diary import list_row
    from hpc_train.store.layout import RunDir

    def kept(size: int, seen: Seen) -> Kept:
        words = [seen.job.slurm_state, seen.job.reason, seen.job.nodes] if seen.job else None
        # An open run's state can be told from Slurm's words alone while its job waits or runs.
        lasts = seen.ended or (words is not None and not seen.status.state.ended)
        status = seen.status
        row = list(list_row(status))
        words = None if seen.ended else words
        return size if lasts else NEVER, words, status.submitted or 0.0, status.job_id, row

    found = see([RunDir(Path(path)) for path in changed], time.time(), asked=asked)
    return {
        path: kept(size, seen) for (path, size), seen in zip(changed.items(), found, strict=True)
    }


def _sizes(folder: str) -> Iterator[tuple[str, int]]:
    """Each run below a folder and the size of its diary, oldest first within each name."""
    for name in _names(folder):
        for run in _names(f"{folder}/{name}"):
            path = f"{folder}/{name}/{run}"
            try:
                yield path, os.stat(f"{path}/events.jsonl").st_size  # noqa: PTH116
            except (FileNotFoundError, NotADirectoryError):
                if os.path.isfile(f"{path}/plan.json"):  # noqa: PTH113
                    yield path, 0


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []


def _file(environ: Mapping[str, str], folder: str) -> str:
    name = folder.replace("%", "%%").replace("/", "%")
    return f"{state_folder(environ)}/glance/{name[-NAME_MAX:]}"


def _read(file: str) -> dict[str, Kept]:
    try:
        with open(file, "rb") as stream:  # noqa: PTH123
            wrote, found = marshal.loads(stream.read())  # load() reads byte by byte
    except (OSError, ValueError, EOFError, TypeError):
        return {}  # not there, torn, or of another Python
    return found if wrote == FORMAT else {}


def _write(file: str, found: dict[str, Kept]) -> None:
    """Replace the file; a home that is read-only or full costs the time, not the list."""
    temporary = f"{file}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120
        with open(temporary, "wb") as stream:  # noqa: PTH123
            stream.write(marshal.dumps((FORMAT, found)))
        os.replace(temporary, file)  # noqa: PTH105
    except OSError:
        return
