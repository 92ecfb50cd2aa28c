"""Ranks agree at step boundaries: one small all-reduce on a CPU group says what all do next.

Every rank brings whether it was asked to stop; rank 0 also brings whether a periodic save is due
and after how many boundaries to ask again. So all ask at the same boundaries, whatever their
clocks and signals say, and one signalled rank suffices.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from hpc_train.training.resume.stop import StopFlag

REACTION_S = 0.7  # between two checks; with the step itself, a signal is seen within a second
COST_SHARE = 0.001  # of the time between two checks
_CAUSES = ("", "stop file", "SIGUSR1", "SIGUSR2", "SIGTERM")


def cpu_group(world_size: int) -> dist.ProcessGroup | None:
    """A gloo group over all ranks for agreements; None for a world of one. Collective."""
    if world_size == 1:
        return None
    group: dist.ProcessGroup = dist.new_group(backend="gloo")
    return group


@dataclass(frozen=True)
class Agreed:
    """What all ranks know after a check.

    Attributes:
        cause: Signal or "stop file" that some rank met; empty if none was asked to stop.
        save: A periodic save is due.
        written: Number of saves that every rank has finished to write, or failed to.
        common: The least number of batches that any rank has before it.
    """

    cause: str = ""
    save: bool = False
    written: int = 0
    common: int = 0


def next_check(step_time_s: float, cost_s: float) -> int:
    """Boundaries until the next check: rare enough to cost little, soon enough to react. Pure."""
    interval_s = min(REACTION_S, cost_s / COST_SHARE)
    return max(1, math.floor(interval_s / step_time_s)) if step_time_s > 0 else 1


class Agreement:
    """Counts boundaries, and asks the other ranks when it is time.

    Args:
        group: From `cpu_group`; None makes every check local.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None,
        stop: StopFlag,
        *,
        rank: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.group = group
        self.rank = rank
        self._stop = stop
        self._clock = clock
        self._until_check = 1
        self._step_times_s: deque[float] = deque(maxlen=20)
        self._costs_s: deque[float] = deque(maxlen=20)
        self._last: float | None = None
        # Reused: cause, save due, boundaries to the next check, and negative, since the reduction
        # takes the greatest: saves written, batches to come.
        self._vector = torch.zeros(5, dtype=torch.float64)

    @property
    def step_time_s(self) -> float | None:
        """Median time between the last boundaries."""
        return statistics.median(self._step_times_s) if self._step_times_s else None

    def rest(self) -> None:
        """Something other than a step comes (a validation): its time is no step's time."""
        self._last = None

    def meet(self) -> None:
        """Wait for all ranks to come here. Collective."""
        if self.group is not None:
            dist.barrier(group=self.group)

    def boundary(self, *, save_due: bool, written: int) -> Agreed | None:
        """Called by all ranks at the same boundaries; None where it is not time to ask."""
        now = self._clock()
        if self._last is not None:
            self._step_times_s.append(now - self._last)
        self._last = now
        self._until_check -= 1
        if self._until_check > 0:
            return None
        return self.check(save_due=save_due, written=written)

    def check(self, *, save_due: bool = False, written: int = 0, common: int = 0) -> Agreed:
        """Ask now; collective. The arguments are this rank's, see `Agreed`."""
        self._vector[0] = self._cause_number()
        self._vector[1] = float(save_due and self.rank == 0)
        self._vector[2] = self._interval() if self.rank == 0 else 0
        self._vector[3] = -written
        self._vector[4] = -common
        if self.group is not None:
            before = self._clock()
            dist.all_reduce(self._vector, op=dist.ReduceOp.MAX, group=self.group)
            self._costs_s.append(self._clock() - before)
        cause, save, interval, written_negative, common_negative = self._vector.tolist()
        self._until_check = int(interval)
        if cause:
            self._stop.set(_CAUSES[int(cause)])
        return Agreed(
            _CAUSES[int(cause)], bool(save), int(-written_negative), int(-common_negative)
        )

    def _cause_number(self) -> int:
        reason = self._stop.reason
        return _CAUSES.index(reason) if reason in _CAUSES else int(reason is not None)

    def _interval(self) -> int:
        if self.step_time_s is None or len(self._step_times_s) < 3:
            return 1
        # The cheapest of the last ones: the rest of the others is waiting for a slower rank,
        # which the step's own all-reduce would have waited for just as well.
        cost_s = min(self._costs_s, default=0.0)
        return next_check(self.step_time_s, max(cost_s, 5e-5))
