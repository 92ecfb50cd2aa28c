"""One supervisor a run: an advisory lock, freed by the kernel when its holder dies."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hpc_train.errors import HpcTrainError

# Lustre without `-o flock` says ENOSYS (mount.lustre(8)), an NFS server without locks ENOLCK.
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP})


def flock(descriptor: int, operation: int) -> None:
    """Lock a file; where the file system has no locks, do nothing: `hpc-train doctor` tells of it.

    Raises:
        BlockingIOError: another one has it; OSError: as the file system says.
    """
    try:
        fcntl.flock(descriptor, operation)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


@contextmanager
def held_lock(path: Path, owner: str, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock for the time of the block; `owner` is written into it for people.

    Args:
        wait_s: How long to wait for another holder to leave: a fresh job may start while the
            supervisor that submitted it writes its last lines.

    Raises:
        HpcTrainError: when another supervisor has it, with its owner's words.
    """
    with path.open("a+", encoding="utf-8") as stream:
        try:
            _lock(stream.fileno(), time.monotonic() + wait_s)
        except BlockingIOError as error:
            stream.seek(0)
            other = stream.read().strip() or "another process"
            raise HpcTrainError(
                f"this run is already being trained by {other}",
                "wait for it, or end it with `hpc-train cancel`; two jobs must not share a run",
            ) from error
        stream.truncate(0)
        stream.write(owner + "\n")
        stream.flush()
        yield


@contextmanager
def waited_lock(path: Path, *, wait_s: float) -> Iterator[None]:
    """Have others of this lock wait for the block, but none for longer than `wait_s`.

    Args:
        path: A file that is there; one that cannot be opened is not locked.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            stream = stack.enter_context(path.open("r+b"))
            _lock(stream.fileno(), time.monotonic() + wait_s)
        yield


def _lock(descriptor: int, deadline: float) -> None:
    while True:
        try:
            flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.2)
        else:
            return


def is_held(path: Path) -> bool:
    """Whether a living supervisor on this machine (or this file system) holds the lock."""
    if not path.exists():
        return False
    # Another user's can be read alone; over NFS a file has to be writable for LOCK_EX (flock(2)).
    is_writable = os.access(path, os.W_OK)
    with path.open("a+b" if is_writable else "rb") as stream:
        try:
            exclusive = fcntl.LOCK_EX if is_writable else fcntl.LOCK_SH
            flock(stream.fileno(), exclusive | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def is_locked(path: Path) -> bool:
    """The same of a file with `waited_lock`; one that cannot be opened is not locked."""
    with suppress(OSError):
        return is_held(path)
    return False
