"""Where a sweep stands: the status of each point, counted, and the best of them. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpc_train.config.words import did_you_mean
from hpc_train.errors import NoSuchRunError, UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.status import SCHEMA_VERSION, RunStatus

# A sweep is in the first of these states that a point is in.
_BY_WEIGHT = (
    *(RunState.RUNNING, RunState.PENDING, RunState.LOST, RunState.FAILED, RunState.TIMED_OUT),
    *(RunState.CANCELLED, RunState.COMPLETED),
)
_SMALLER_IS_BETTER = re.compile(r"loss|err|mse|mae|perplexity|ppl", re.IGNORECASE)


@dataclass(frozen=True)
class PointStatus:
    """A point: its number, what was chosen, its run."""

    number: int
    overrides: Mapping[str, Any]
    run: RunStatus


@dataclass(frozen=True, kw_only=True)
class SweepStatus:
    """A sweep at a glance, and its points."""

    sweep: str
    name: str
    sweep_dir: str
    job_id: str  # of the newest array
    submitted: float | None
    points: tuple[PointStatus, ...]

    @property
    def state(self) -> RunState:
        """The state of the whole: it ends with its last point."""
        states = {point.run.state for point in self.points}
        return next(state for state in _BY_WEIGHT if state in states)

    @property
    def counts(self) -> dict[str, int]:
        """How many points are in each state, by its word."""
        found = Counter(point.run.state for point in self.points)
        return {state.value: found[state] for state in _BY_WEIGHT if state in found}

    @property
    def summary(self) -> str:
        """`9 points: 3 running, 6 completed`."""
        counts = ", ".join(f"{number} {state}" for state, number in self.counts.items())
        return f"{len(self.points)} point{'s' if len(self.points) > 1 else ''}: {counts}"

    @property
    def to_go_on_with(self) -> list[int]:
        """The points that have ended and are not complete."""
        ended = (point for point in self.points if point.run.state.ended)
        return [it.number for it in ended if it.run.state is not RunState.COMPLETED]

    def as_run(self) -> RunStatus:
        """One line for all points, where runs are listed."""
        return RunStatus(
            run=self.sweep,
            name=self.name,
            run_dir=self.sweep_dir,
            state=self.state,
            job_id=self.job_id,
            backend="slurm",
            reason=self.summary,
            submitted=self.submitted,
            step=sum(point.run.step for point in self.points),
            attempts=tuple(attempt for point in self.points for attempt in point.run.attempts),
        )

    def to_json(self, best: BestPoint | None = None) -> dict[str, Any]:
        """The document of `hpc-train status SWEEP --json`."""
        return {
            "schema_version": SCHEMA_VERSION,
            "sweep": self.sweep,
            "name": self.name,
            "sweep_dir": self.sweep_dir,
            "state": self.state.value,
            "states": self.counts,
            "job_id": self.job_id,
            "submitted": self.submitted,
            "best": None if best is None else best.to_json(),
            "points": [
                {"point": point.number, "overrides": dict(point.overrides), **point.run.to_json()}
                for point in self.points
            ],
        }


@dataclass(frozen=True)
class BestPoint:
    """The point with the best value of a metric."""

    point: PointStatus
    metric: str
    mode: str  # min or max
    value: float

    def to_json(self) -> dict[str, Any]:
        """As it stands under `best`."""
        return {
            "point": self.point.number,
            "run": self.point.run.run,
            "overrides": dict(self.point.overrides),
            "metric": self.metric,
            "mode": self.mode,
            "value": self.value,
        }


def best_point(status: SweepStatus, wanted: str) -> BestPoint:
    """The best point by `METRIC`, `METRIC:min` or `METRIC:max`; the first one of equals.

    Without min or max a loss or an error is best when small, all else when large. A point that has
    no such metric (yet), or whose value is no number, does not count.

    Raises:
        UsageError: for another word than min and max, and for a metric that no point has.
        NoSuchRunError: while no point has any metric.
    """
    metric, colon, mode = wanted.partition(":")
    if colon and mode not in ("min", "max"):
        raise UsageError(f"--best {wanted}: {mode!r} is neither min nor max", f"{metric}:min")
    mode = mode or ("min" if _SMALLER_IS_BETTER.search(metric) else "max")
    there = sorted({name for point in status.points for name in point.run.metrics})
    if not there:
        raise NoSuchRunError("no point has metrics yet", "they are told when a training ends")
    if metric not in there:
        raise UsageError(
            f"--best {wanted}: no point has the metric {metric!r}",
            did_you_mean(metric, there) or f"there are: {', '.join(there)}",
        )
    values = [(point, point.run.metrics.get(metric)) for point in status.points]
    numbers = [
        (point, float(value))
        for point, value in values
        if isinstance(value, (int, float)) and not math.isnan(value)
    ]
    if not numbers:
        raise NoSuchRunError(f"{metric} is a number at no point", "see hpc-train status")
    best = min(numbers, key=lambda pair: pair[1] if mode == "min" else -pair[1])
    return BestPoint(best[0], metric, mode, best[1])
