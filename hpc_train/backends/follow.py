"""Staying with one run: its status again and again, with as few questions to Slurm as will do."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from hpc_train.backends.observe import observe
from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import RunState
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus, SchedulerView

__all__ = ["follow"]

POLL_S = 0.5
ASK_SLURM_EVERY_S = 10.0  # at most so often, whatever happens
ASK_SLURM_AT_LEAST_EVERY_S = 60.0  # while what it says stays the same


def follow(run: RunDir, timeout_s: float | None) -> Iterator[RunStatus]:
    """The run's status about twice a second, until it has ended.

    What happens is mostly told by the run's own history. Slurm is asked at first; again ten seconds
    later, and then ever more seldom as long as neither its answer nor the history has changed.

    Raises:
        HpcTrainError: when it has not ended after `timeout_s`.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    slurm = _SlurmsView()
    while True:
        status = slurm.status_of(run, time.monotonic())
        yield status
        if status.state.ended:
            return
        if deadline is not None and time.monotonic() > deadline:
            raise HpcTrainError(f"{status.name} is still {status.state.value}")
        time.sleep(POLL_S)


class _SlurmsView:
    """What Slurm said last of the run's job, and when it is to be asked again."""

    def __init__(self) -> None:
        self._view: SchedulerView | None = None
        self._asked_at = -math.inf
        self._pause_s = ASK_SLURM_EVERY_S
        self._size = -1
        self._attempts = 0

    def status_of(self, run: RunDir, now: float) -> RunStatus:
        size = _size_of_history(run)
        if size != self._size:
            self._size, self._pause_s = size, ASK_SLURM_EVERY_S
        asks = now - self._asked_at >= self._pause_s
        (status,) = observe([run], time.time(), ask_slurm=asks, known=self._view)
        if asks:
            self._asked_at = now
            same = status.view == self._view
            longer_s = min(2 * self._pause_s, ASK_SLURM_AT_LEAST_EVERY_S)
            self._pause_s = longer_s if same else ASK_SLURM_EVERY_S
            self._view = status.view
        elif len(status.attempts) > self._attempts and status.attempts[-1].ended is None:
            # Its supervisor has begun, which Slurm need not be asked about.
            self._view = SchedulerView(RunState.RUNNING)
            (status,) = observe([run], time.time(), ask_slurm=False, known=self._view)
        self._attempts = len(status.attempts)
        return status


def _size_of_history(run: RunDir) -> int:
    try:
        return run.events.stat().st_size
    except FileNotFoundError:
        return 0
