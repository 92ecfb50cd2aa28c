"""Whether a training ends before its job's time limit, at its present pace. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from hpc_train.config.schema import RequeueConfig
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.ranks import Heartbeat

_TIMES = {1: "once", 2: "twice"}


@dataclass(frozen=True)
class TimeLimit:
    """The time limit of the job that carries a run.

    Attributes:
        at: Seconds since the epoch.
        length_s: From the job's start; the next job of the run gets as much.
        lead_s: So long before it the ranks save and leave.
        policy: What follows then.
    """

    at: float
    length_s: float
    lead_s: float = 0.0
    policy: RequeueConfig = field(default_factory=RequeueConfig)


@dataclass(frozen=True)
class Forecast:
    """What a run that trains has before it.

    Attributes:
        limit_in_s: Seconds to its job's time limit.
        requeues: How often it will be put back into the queue; None where nobody can tell, as
            without a pace, or with a start that takes as long as a job.
        warning: Empty where it ends before the limit, or nobody can tell.
    """

    limit_in_s: float
    requeues: int | None
    warning: str


def forecast_end(
    beat: Heartbeat | None, attempts: Sequence[AttemptRecord], limit: TimeLimit, now: float
) -> Forecast:
    """Hold the time that the training needs against the time that its job has.

    A job gives the training its length without the lead and without what this attempt needed
    before its first step. Time in the queue does not count.

    Args:
        beat: Rank 0's newest sign of life.
        attempts: All so far, the present one last.
        limit: Of the present job.
        now: Seconds since the epoch.
    """
    limit_in_s = max(0.0, limit.at - now)
    if beat is None or beat.eta_s is None or not attempts:
        return Forecast(limit_in_s, None, "")
    needed_s = beat.eta_s - max(0.0, now - beat.time)
    missing_s = needed_s - max(0.0, limit_in_s - limit.lead_s)
    if missing_s <= 0:
        return Forecast(limit_in_s, 0, "")
    trained_s = sum(spent for phase, spent in beat.seconds.items() if phase != "start")
    start_s = beat.time - attempts[-1].started - trained_s if beat.seconds else 0.0
    each_s = limit.length_s - limit.lead_s - max(0.0, start_s)
    requeues = math.ceil(missing_s / each_s) if each_s > 0 else None
    return Forecast(limit_in_s, requeues, _warning(requeues, len(attempts), limit.policy))


def _warning(requeues: int | None, attempts: int, policy: RequeueConfig) -> str:
    late = "won't finish before its limit"
    if not policy.enabled:
        return f"{late}, and requeue.enabled is false"
    most = policy.max_attempts
    if most is not None and attempts + (requeues or 1) > most:
        return f"{late}, and requeue.max_attempts ({most}) does not suffice"
    if requeues is None:
        return f"{late}, and a start takes as long as a job: raise slurm.time"
    return f"{late}: will be requeued {_TIMES.get(requeues, f'{requeues} times')}"
