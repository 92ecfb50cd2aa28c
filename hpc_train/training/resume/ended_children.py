"""Forked children of a rank, which inherit its handlers, and are ended by their own parent.

multiprocessing's Pool ends its workers by SIGTERM and waits for them without a limit
(multiprocessing/pool.py, `_terminate_pool`). Slurm sends SIGTERM to all processes of a step, where
the rank goes on to its next step and may still need them. A handler of Python's does not learn who
has sent a signal, so that a process which sends it writes down to whom.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SLOTS = 1 << 16  # of process ids, which follow one another; a whole number of pages
# Python's handler runs between two instructions of its main thread: a child that waits for a lock
# does not come to it, where SIGTERM without a handler would end it at once.
_WAITS_S = (0.002, 0.01, 0.05, 0.2)


class _Processes:
    """A set of process ids that a process shares with all that are forked off it."""

    def __init__(self) -> None:
        self._ids = memoryview(mmap.mmap(-1, _SLOTS * 4)).cast("I")

    def __contains__(self, pid: int) -> bool:
        return self._ids[pid % _SLOTS] == pid

    def add(self, pid: int) -> None:
        self._ids[pid % _SLOTS] = pid

    def remove(self, pid: int) -> None:
        if pid in self:
            self._ids[pid % _SLOTS] = 0


class EndedChildren:
    """Which processes this one, or one that is forked off it, has sent a SIGTERM by `os.kill`."""

    def __init__(self) -> None:
        self._told, self._inherit = _Processes(), _Processes()
        self._kill, self._signal = os.kill, signal.signal

    def follow(self) -> None:
        """From now on `os.kill` writes them down."""
        module: Any = os
        module.kill = self._note_and_kill
        os.register_at_fork(after_in_child=self._forked)

    def end_if_told(self) -> None:
        """End this process as SIGTERM does, where one of these has sent it."""
        own = os.getpid()
        if own in self._told:
            self._signal(signal.SIGTERM, signal.SIG_DFL)
            self._kill(own, signal.SIGTERM)

    def _forked(self) -> None:
        """In a child: it has the handler of its parent until it sets one."""
        own = os.getpid()
        self._inherit.add(own)
        module: Any = signal
        set_as_before: Callable[..., Any] = signal.signal

        def set_own(number: int, handler: Any) -> Any:
            if number == signal.SIGTERM:
                self._inherit.remove(os.getpid())
            return set_as_before(number, handler)

        module.signal = set_own

    def _note_and_kill(self, pid: int, number: int, /) -> None:
        if number == signal.SIGTERM and pid > 0:
            self._told.add(pid)
        self._kill(pid, number)
        if number == signal.SIGTERM and pid > 0 and self._goes_on(pid):
            for wait_s in _WAITS_S:
                time.sleep(wait_s)
                if not self._goes_on(pid):
                    return
            self._kill(pid, signal.SIGKILL)

    def _goes_on(self, pid: int) -> bool:
        """Whether it is a child that has not yet left, and no handler of its own to leave by."""
        return pid in self._inherit and _catches_it(pid)


def _catches_it(pid: int) -> bool:
    """Whether a process runs and has a handler of SIGTERM, which one that it executes has not."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it is gone
        return False
    told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    has_ended = told.get("State", "Z")[:1] in ("Z", "X")
    caught = int(told.get("SigCgt", "0"), 16)
    return not has_ended and bool(caught >> (signal.SIGTERM - 1) & 1)


_OF_PROCESS: list[EndedChildren] = []  # one, once a rank has asked for it


def children_of_process() -> EndedChildren:
    """Those of this process, followed from the first call on."""
    if not _OF_PROCESS:
        _OF_PROCESS.append(EndedChildren())
        _OF_PROCESS[0].follow()
    return _OF_PROCESS[0]
