"""Asking a rank to stop: a flag that signals and a file set, and nothing else. Imports no torch.

A handler that saves or communicates runs in the middle of anything, a collective included: that is
how Lightning's own requeue deadlocks. So the flag is all a handler touches.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hpc_train.training.resume.ended_children import EndedChildren, children_of_process

# TERM: preemption, scancel, the time limit. USR1/USR2: sbatch --signal. They all mean the same.
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2})


class Stopped(Exception):  # noqa: N818 - nothing is wrong
    """All ranks saved the same step (or had nothing new to save) and leave, to go on later."""

    def __init__(self, cause: str, step: int, *, saved: bool) -> None:
        what = f"saved step {step}" if saved else f"step {step}: nothing new to save"
        super().__init__(f"stopped by {cause}: {what}")
        self.cause = cause
        self.step = step
        self.saved = saved


class StopFlag:
    """Set once by a signal or by the `stop` file, read at every step boundary.

    Attributes:
        reason: Name of the signal, or "stop file"; None while nobody asked. The first one stays.
    """

    def __init__(self, stop_file: Path | None = None) -> None:
        self.reason: str | None = None
        self._stop_file = stop_file
        self._pid: int | None = None
        self._children: EndedChildren | None = None

    def install(self) -> StopFlag:
        """Take over the stop signals of this process; main thread only. Returns itself."""
        self._pid = os.getpid()
        self._children = children_of_process()
        for number in STOP_SIGNALS:
            signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        # A forked child inherits the handler; it is not the one that was asked, but by its parent.
        if os.getpid() == self._pid:
            self.set(signal.Signals(number).name)
        elif number == signal.SIGTERM and self._children is not None:
            self._children.end_if_told()

    def set(self, reason: str) -> None:
        """Ask for a stop."""
        if self.reason is None:
            self.reason = reason

    def look_at(self, stop_file: Path) -> None:
        """Look for another file from now on."""
        self._stop_file = stop_file

    def poll(self) -> None:
        """Look for the stop file: one stat call, by the heartbeat thread, four times a second."""
        if self.reason is None and self._stop_file is not None and self._stop_file.exists():
            self.set("stop file")


@contextmanager
def shielded_from_signals() -> Iterator[None]:
    """Children born inside keep the stop signals blocked for life.

    Slurm signals every process of a step, data workers included, and PyTorch's workers die of
    SIGTERM, which raises in the rank before it could save (slurm(1), scancel(1)). A blocked
    signal is inherited through fork and exec; here it is only deferred until the block ends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
