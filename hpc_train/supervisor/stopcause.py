"""Why the ranks were asked to stop: preempted, out of time, or cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from hpc_train.errors import SlurmError
from hpc_train.plan.states import CANCEL_ASKED, Outcome, scancelled
from hpc_train.plan.units import SIGNAL_IS_EARLY_S, slurm_time, time_s
from hpc_train.slurm.jobs import JobDetails
from hpc_train.supervisor.allocation import Allocation

TIME_LIMIT = "TimeLimit"  # squeue(1), JOB REASON CODES
SHORT_LIMIT = (
    "the job's limit, {limit}, is no longer than the lead of its script's signal, {lead} s"
    " (render it anew: hpc-train render CFG --time {limit}; or sbatch --time={limit}"
    " --signal=USR2@{fitting} FILE)"
)
SLURM_TIME = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True)
class StopCause:
    """What a stop from outside means for the run.

    Attributes:
        requeued: Slurm has already put the job back into the queue.
    """

    outcome: Outcome | None
    reason: str = ""
    requeued: bool = False
    may_requeue: bool = True

    @property
    def is_cancel(self) -> bool:
        """Whether somebody wants the run to end."""
        return self.outcome is Outcome.CANCELLED


def stop_cause(
    allocation: Allocation,
    *,
    told_to_cancel: bool,
    stop_file: bool,
    terminated: bool,
    signal_lead_s: int,
    details: Callable[[str], JobDetails],
    now: float,
) -> StopCause:
    """Tell the causes apart by what Slurm says of the job at this moment.

    Seen on Slurm 22.05: PreemptTime is set from the start of the grace on, and also under
    PreemptMode=CANCEL; a requeued job counts one more restart than its batch step was told; a
    cancelled one has neither. A job that ends at its limit has the reason TimeLimit, and one that
    was cancelled has none, also shortly before its limit.

    Args:
        told_to_cancel: `hpc-train cancel` has written so into the history.
        stop_file: Somebody made the run's `stop` file.
        terminated: The supervisor itself got SIGTERM.
        details: Asks Slurm for one job.
        now: Seconds since the epoch.
    """
    if told_to_cancel:
        return StopCause(Outcome.CANCELLED, CANCEL_ASKED)
    if not allocation.is_slurm:
        if terminated or stop_file:
            return StopCause(Outcome.CANCELLED, "the supervisor was asked to stop")
        return StopCause(None)
    try:
        job = details(allocation.job_id)
    except SlurmError as error:
        return StopCause(None, f"Slurm could not be asked why ({error.message})")
    requeued = job.restarts > allocation.restarts
    allowed = job.may_requeue
    if job.preempted or requeued:
        by = "preempted by Slurm" if job.preempted else "Slurm put the job back into the queue"
        return StopCause(Outcome.PREEMPTED, by, requeued, allowed)
    # The limit sends USR2 first, while the job runs; what ends it at the limit has a reason.
    at_limit = not job.is_ending or job.get("Reason") == TIME_LIMIT
    if at_limit and _out_of_time(job, signal_lead_s, now):
        why = _short_limit(job, signal_lead_s, now) or "the job's time limit came near"
        return StopCause(Outcome.TIMEOUT, why, requeued, allowed)
    # A supervisor that the SIGTERM has met while it started does not know of it.
    if terminated or job.is_ending:
        return StopCause(Outcome.CANCELLED, scancelled())
    if stop_file:
        return StopCause(Outcome.CANCELLED, "somebody made the file `stop` in the run directory")
    return StopCause(None, "", requeued, allowed)


def _out_of_time(job: JobDetails, signal_lead_s: int, now: float) -> bool:
    """By StartTime and TimeLimit: EndTime is already `now` for a job that is being cancelled."""
    began, limit_s = _times(job)
    early_s = signal_lead_s + SIGNAL_IS_EARLY_S
    return began is not None and limit_s is not None and began + limit_s - now <= early_s


def _short_limit(job: JobDetails, signal_lead_s: int, now: float) -> str:
    """That the job was signalled as it began, since its limit leaves no time before; else empty.

    As of a script that was rendered for a longer time, by `sbatch --time`. Whether sbatch was given
    another --signal, too, Slurm does not tell; it then comes later.
    """
    began, limit_s = _times(job)
    if (
        began is None
        or limit_s is None
        or limit_s > signal_lead_s
        or now - began > SIGNAL_IS_EARLY_S
    ):
        return ""
    # A quarter, as Slurm may send it a minute early.
    fitting = max(1, limit_s // 4)
    return SHORT_LIMIT.format(limit=slurm_time(limit_s), lead=signal_lead_s, fitting=fitting)


def _times(job: JobDetails) -> tuple[float | None, int | None]:
    """When it began, and its limit, in seconds; None for what Slurm does not tell."""
    began, limit = job.get("StartTime"), job.get("TimeLimit")
    limit_s = time_s(limit) if limit and limit not in ("UNLIMITED", "Partition_Limit") else None
    return time.mktime(time.strptime(began, SLURM_TIME)) if began else None, limit_s
