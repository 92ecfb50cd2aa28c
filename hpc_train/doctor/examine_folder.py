"""Does the file system of the runs do what a run directory needs? Tried with files of its own."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hpc_train.preflight.checks.findings import Finding, Thresholds
from hpc_train.runs.atomic import write_text
from hpc_train.runs.lock import flock

SPACE_WARN_GIB = 20.0  # a few checkpoints of a model of 1e9 parameters with Adam's state
ANSWER_S = 60.0  # a busy shared file system takes seconds for an fsync
_ELSEWHERE = "set runs_dir to a folder on the shared file system where you may write"
_IN_MEMORY = ("tmpfs", "ramfs")
_NOT_SHARED = (*_IN_MEMORY, "overlay")  # or of one container, which may be the whole cluster
MOUNTS = Path("/proc/self/mounts")


def existing_parent(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    return next(p for p in (path.absolute(), *path.absolute().parents) if p.is_dir())


def check_in_time(
    folder: Path,
    limit_s: float = ANSWER_S,
    check: Callable[[Path], Iterable[Finding]] | None = None,
) -> list[Finding]:
    """What `check_folder` says, or that the file system is silent: a dead server blocks."""
    found: list[Finding] = []
    # A call that never returns cannot be ended; as a daemon it does not keep this process.
    asked = threading.Thread(
        target=lambda: found.extend((check or check_folder)(folder)), daemon=True
    )
    asked.start()
    asked.join(limit_s)
    if asked.is_alive():
        text = f"{folder}: the file system has not answered in {limit_s:g} s"
        found = [
            Finding("", "", "runs folder", "fail", text, "is its server up? df and dmesg tell")
        ]
    return found


def check_folder(folder: Path) -> Iterator[Finding]:
    """Rename, fsync, lock, the server's clock and the free space. `folder` has to be there."""
    yield _kind(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".hpc-train-doctor-", dir=folder) as scratch:
            for name, check in _CHECKS.items():
                yield _tried(name, check, Path(scratch))
    except OSError as error:
        text = f"{folder} cannot be written: {error.strerror}"
        yield Finding("", "", "runs folder", "fail", text, _ELSEWHERE)
    free_gib = shutil.disk_usage(folder).free / 2**30
    if free_gib >= SPACE_WARN_GIB:
        yield Finding("", "", "free space", "ok", f"{free_gib:.0f} GiB")
    else:
        fix = f"make room, or {_ELSEWHERE}"
        yield Finding("", "", "free space", "warn", f"{free_gib:.1f} GiB", fix)


def unseen_elsewhere(folder: Path) -> str:
    """That it is in this machine's memory; empty where it may be shared."""
    try:
        kind = _file_system(folder, MOUNTS)
    except OSError:
        return ""
    return _unseen(folder, kind) if kind in _IN_MEMORY else ""


def _unseen(folder: Path, kind: str) -> str:
    return f"{folder} is on {kind}, which other nodes do not see"


def _kind(folder: Path) -> Finding:
    kind = _file_system(folder, MOUNTS)
    if kind in _NOT_SHARED:
        text = _unseen(folder, kind)
        return Finding("", "", "runs folder", "warn", text, _ELSEWHERE)
    return Finding("", "", "runs folder", "ok", f"{folder} ({kind or 'unknown file system'})")


def _file_system(folder: Path, mounts: Path) -> str:
    """Type of the mount that holds `folder`; the longest path wins, of equal ones the last."""
    best = ("", "")
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        point, kind = line.split(" ")[1:3]
        where = point.replace("\\040", " ")  # proc_mounts(5): a space is octal 040
        if folder.is_relative_to(where) and len(where) >= len(best[0]):
            best = (where, kind)
    return best[1]


def _tried(name: str, check: Callable[[Path], Finding], scratch: Path) -> Finding:
    try:
        return check(scratch)
    except OSError as error:
        return Finding("", "", name, "fail", f"{error.strerror}", _ELSEWHERE)


def _rename_and_fsync(scratch: Path) -> Finding:
    target = scratch / "renamed"
    for text in ("old", "new"):
        write_text(target, text)
    if target.read_text(encoding="utf-8") != "new" or len(list(scratch.iterdir())) != 1:
        return Finding("", "", "rename", "fail", "a rename over a file is not seen", _ELSEWHERE)
    return Finding("", "", "rename", "ok", "rename over a file and fsync of file and folder work")


def _locks(scratch: Path) -> Finding:
    """flock(2): two descriptions of one file exclude each other even in one process."""
    path = scratch / "lock"
    with path.open("a") as first, path.open("a") as second:
        flock(first.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            flock(second.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Finding("", "", "locks", "ok", "flock excludes a second holder")
    fix = "mount it with flock (Lustre: -o flock), or set runs_dir to another file system"
    return Finding(
        "", "", "locks", "fail", "two holders of one lock: two jobs may share a run", fix
    )


def _clock(scratch: Path) -> Finding:
    """The time that the file server gives a new file against this host's."""
    limit = Thresholds.clock_warn_s
    before = time.time()
    (scratch / "clock").touch()
    after, stamp = time.time(), (scratch / "clock").stat().st_mtime
    # A kernel stamps files by its last tick, some milliseconds ago.
    off = max(before - stamp, stamp - after, 0.0)
    if off <= limit:
        return Finding("", "", "clock", "ok", f"within {limit:g} s of the file system's")
    text = f"{off:.1f} s off the file system's: ages of files and logs mislead"
    return Finding("", "", "clock", "warn", text, "synchronise both with NTP (chronyc tracking)")


_CHECKS: dict[str, Callable[[Path], Finding]] = {
    "rename": _rename_and_fsync,
    "locks": _locks,
    "clock": _clock,
}
