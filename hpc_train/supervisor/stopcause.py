"""Why the ranks were asked to stop: preempted, out of time, or cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from hpc_train.errors import SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import CANCEL_ASKED, LIMIT_CHANGED, Outcome, scancelled
from hpc_train.plan.units import SIGNAL_IS_EARLY_S, slurm_time, time_s
from hpc_train.runs.layout import RunDir
from hpc_train.slurm.jobs import JobDetails
from hpc_train.supervisor.allocation import Allocation

TIME_LIMIT = "TimeLimit"  # squeue(1), JOB REASON CODES
SHORT_LIMIT = (
    "the job's limit, {limit}, is no longer than the lead of its script's signal, {lead} s"
    " (render it anew: hpc-train render CFG --time {limit}; or sbatch --time={limit}"
    " --signal=USR2@{fitting} FILE)"
)
_CHANGED = (
    f"{LIMIT_CHANGED} {{limit}}, and {{asked}} was asked for (hpc-train cancel {{run}}, then"
    " hpc-train resume {run} --time {asked})"
)
SLURM_TIME = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True)
class AskedTime:
    """What a job was submitted with, in seconds.

    Attributes:
        lead_s: How long before its limit Slurm sends the signal.
        limit_s: None for the partition's, and where Slurm itself may choose a shorter one.
        run: The id of the run; empty for a rendered script, which is submitted with any limit.
    """

    lead_s: int
    limit_s: int | None = None
    run: str = ""

    @classmethod
    def of(cls, plan: Plan, run: RunDir) -> AskedTime:
        """As the run's plan says."""
        options = dict(plan.slurm.options)
        limit = None if "time-min" in options else options.get("time")  # sbatch(1), --time-min
        is_submitted = run.config.is_file()
        return cls(
            plan.slurm.signal_lead_s,
            time_s(limit) if limit else None,
            run.run_id if is_submitted else "",
        )


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
    asked: AskedTime,
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
        asked: What the job was submitted with.
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
    if cause := _by_slurm(job, asked, now, requeued=requeued):
        return cause
    # A supervisor that the SIGTERM has met while it started does not know of it.
    if terminated or job.is_ending:
        return StopCause(Outcome.CANCELLED, scancelled())
    if stop_file:
        return StopCause(Outcome.CANCELLED, "somebody made the file `stop` in the run directory")
    return StopCause(None, "", requeued, job.may_requeue)


def _by_slurm(job: JobDetails, asked: AskedTime, now: float, *, requeued: bool) -> StopCause | None:
    """Slurm's own causes, a preemption or the time limit; None where somebody else ends the job."""
    allowed = job.may_requeue
    if job.preempted or requeued:
        by = "preempted by Slurm" if job.preempted else "Slurm put the job back into the queue"
        return StopCause(Outcome.PREEMPTED, by, requeued, allowed)
    # The limit sends USR2 first, while the job runs; what ends it at the limit has a reason.
    at_limit = not job.is_ending or job.get("Reason") == TIME_LIMIT
    if at_limit and _out_of_time(job, asked.lead_s, now):
        why = _changed(job, asked) or _short_limit(job, asked.lead_s, now)
        why = why or "the job's time limit came near"
        return StopCause(Outcome.TIMEOUT, why, requeued, allowed)
    return None


def _out_of_time(job: JobDetails, signal_lead_s: int, now: float) -> bool:
    """By StartTime and TimeLimit: EndTime is already `now` for a job that is being cancelled."""
    began, limit_s = _times(job)
    early_s = signal_lead_s + SIGNAL_IS_EARLY_S
    return began is not None and limit_s is not None and began + limit_s - now <= early_s


def _changed(job: JobDetails, asked: AskedTime) -> str:
    """That somebody has shortened the limit of a run that was submitted; else empty.

    As by `scontrol update JobId=7 TimeLimit=10` (scontrol(1)). Slurm rounds a limit up to minutes,
    and a requeue keeps it: a longer one takes a submission.
    """
    _, limit_s = _times(job)
    if not asked.run or asked.limit_s is None or limit_s is None or limit_s >= asked.limit_s:
        return ""
    times = {"limit": slurm_time(limit_s), "asked": slurm_time(asked.limit_s)}
    return _CHANGED.format(run=asked.run, **times)


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
