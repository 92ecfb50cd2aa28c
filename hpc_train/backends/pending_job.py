"""A run's job that waits: why, in the words of the run's plan, history and folder."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.backends.known_plan import known_plan
from hpc_train.backends.moved_in_queue import look_for_its_folder
from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.slurm.jobs import JobView
from hpc_train.slurm.nodes import NodeRow
from hpc_train.slurm.pending import Asked, explain_pending, explain_waiting, is_not_before

FAR_S = 300 * 86400.0  # a job without a time limit counts as one of a year
NO_LIMIT_IN_FRONT = "jobs in front have no time limit, so its start is not known"


def pending_view(
    run: RunDir,
    events: Sequence[Event],
    job: JobView,
    nodes: Sequence[NodeRow],
    now: float,
) -> SchedulerView:
    """What is told of a job that waits, why it does, and what keeps it from starting well.

    Args:
        nodes: What Slurm has, where it was asked.
    """
    # Without time limits Slurm expects the jobs in front to take a year.
    far = job.starts_in_s(now) > FAR_S and not is_not_before(job.reason)
    asked = _asked(run, events, job, nodes)
    meanings = (
        explain_waiting(job.reason, asked, now),
        NO_LIMIT_IN_FRONT if far else "",
        look_for_its_folder(run, job.job_id),
    )
    return SchedulerView(
        RunState.PENDING,
        job.reason,
        "" if far else job.start,
        _trouble(events, job, asked),
        meaning="; ".join(filter(None, meanings)),
    )


def pending_trouble(run: RunDir, events: Sequence[Event], job: JobView) -> str:
    """Of a job that has ended: why it could not start, as Slurm's last reason tells."""
    return _trouble(events, job, _asked(run, events, job, ()))


def _trouble(events: Sequence[Event], job: JobView, asked: Asked) -> str:
    """Why it does not start until something is changed; empty where it will."""
    trouble = explain_pending(job.reason, job.job_id, asked)
    if trouble and job.reason.startswith("DependencyNeverSatisfied"):
        return _waits_in_vain(events) or trouble
    return trouble


def _waits_in_vain(events: Sequence[Event]) -> str:
    """Of a run that waits for another one (`submit --after`), which has ended otherwise."""
    first = [str(event.get("run")) for event in events if event.kind is EventKind.WAITS_FOR]
    if not first:
        return ""
    return (
        f"{first[-1]}, which it waits for, did not complete: hpc-train resume {first[-1]} lets this"
        " one begin, too; or cancel it"
    )


def _asked(run: RunDir, events: Sequence[Event], job: JobView, nodes: Sequence[NodeRow]) -> Asked:
    plan, attempts = known_plan(run), attempts_in(events)
    saved = any(attempt.saved_step for attempt in attempts)
    return Asked(
        options=None if plan is None else dict(plan.slurm.options),
        has_run=any(attempt.job_id == job.job_id for attempt in attempts),
        # The run of a rendered script has no config in which a key could be changed.
        resumable=run.run_id if saved and run.config.is_file() else "",
        nodes=nodes,
        start=job.start,
    )
