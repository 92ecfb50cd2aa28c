"""A run's job that waits: why, in the words of the run's plan, history and folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hpc_train.backends.known_plan import known_plan
from hpc_train.backends.moved_in_queue import lines_on_its_move
from hpc_train.plan.states import RunState
from hpc_train.runs.events import (
    Event,
    EventKind,
    end_of,
    is_cancel_asked,
    last_seen,
    read_events,
    since_last,
)
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.runs.sweep_dir import Entry, entry_at, events_of_point
from hpc_train.slurm.jobs import JobView
from hpc_train.slurm.nodes import NodeRow
from hpc_train.slurm.pending import (
    WITHOUT_WAIT,
    Asked,
    explain_pending,
    explain_waiting,
    is_in_vain,
    is_not_before,
)
from hpc_train.slurm.reservations import Reservation

FAR_S = 300 * 86400.0  # a job without a time limit counts as one of a year
NO_LIMIT_IN_FRONT = "jobs in front have no time limit, so its start is not known"


def pending_view(
    run: RunDir,
    events: Sequence[Event],
    job: JobView,
    nodes: Sequence[NodeRow],
    reservations: Sequence[Reservation],
    now: float,
) -> SchedulerView:
    """What is told of a job that waits, why it does, and what keeps it from starting well.

    Args:
        nodes: What Slurm has, where it was asked.
        reservations: The same of them.
    """
    # Without time limits Slurm expects the jobs in front to take a year.
    far = job.starts_in_s(now) > FAR_S and not is_not_before(job.reason)
    asked = replace(_asked(run, events, job), nodes=nodes, reservations=reservations, now=now)
    meanings = (
        _what_for(events, job.reason) or explain_waiting(job.reason, asked),
        NO_LIMIT_IN_FRONT if far else "",
    )
    return SchedulerView(
        RunState.PENDING,
        job.reason,
        "" if far else job.start,
        _trouble(events, job, asked),
        meaning="; ".join(filter(None, meanings)),
        moved=lines_on_its_move(run, job.job_id),
        resume_with=_resume_with(events, job),
    )


def with_trouble(
    view: SchedulerView, run: RunDir, events: Sequence[Event], job: JobView
) -> SchedulerView:
    """Of a job that has ended: with why it could not start, as Slurm's last reason tells."""
    trouble = _trouble(events, job, _asked(run, events, job))
    return replace(view, trouble=trouble, resume_with=_resume_with(events, job))


def _trouble(events: Sequence[Event], job: JobView, asked: Asked) -> str:
    """Why it does not start until something is changed; empty where it will."""
    trouble = explain_pending(job.reason, job.job_id, asked)
    return (_waits_in_vain(events) if is_in_vain(job.reason) else "") or trouble


def _resume_with(events: Sequence[Event], job: JobView) -> str:
    """The key that leaves its dependency out; empty where another run's resume ends the wait."""
    return WITHOUT_WAIT if is_in_vain(job.reason) and not _waits_in_vain(events) else ""


def _waits_for(events: Sequence[Event]) -> dict[str, Entry]:
    """The runs and sweeps that a run waits for (`submit --after`) and that are not complete."""
    told = [it for it in since_last(events, EventKind.SUBMITTED) if it.kind is EventKind.WAITS_FOR]
    firsts = {str(event.get("run")): event.get("folder") for event in told}
    # Of a submission by an earlier version the folder is not known.
    found = {run: entry_at(Path(str(folder or run))) for run, folder in firsts.items()}
    return {run: entry for run, entry in found.items() if not _is_complete(entry)}


def _is_complete(entry: Entry) -> bool:
    if isinstance(entry, RunDir):
        return entry.done.exists()
    return all(entry.point(k).done.exists() for k in range(len(entry.plan.points)))


def _has_ended(entry: Entry) -> bool:
    """Whether a run, or a point of a sweep, is known to have ended without being complete."""
    whole = read_events(entry.events)
    if isinstance(entry, RunDir):
        return _is_over(whole)
    return any(
        _is_over(events_of_point(entry, number, whole))
        for number in range(len(entry.plan.points))
        if not entry.point(number).done.exists()
    )


def _is_over(events: Sequence[Event]) -> bool:
    kept = last_seen(events)  # what Slurm alone has told
    by_slurm = kept is not None and RunState(kept.get("state")).ended
    return by_slurm or end_of(events) is not None or is_cancel_asked(events)


def _what_for(events: Sequence[Event], reason: str) -> str:
    """What it waits for, where that is known to be runs alone."""
    first = list(_waits_for(events)) if reason == "Dependency" else []
    return f"it waits for {_listed(first)} to be complete (--after)" if first else ""


def _waits_in_vain(events: Sequence[Event]) -> str:
    """Of a run that waits for others (`submit --after`), of which one has ended otherwise."""
    first = _waits_for(events)
    ended = [run for run, entry in first.items() if _has_ended(entry)]
    failed = ended if ended or len(first) > 1 else list(first)
    if failed:
        resume = " and ".join(f"hpc-train resume {run_word(first[run].path)}" for run in failed)
        lets = "let" if len(failed) > 1 else "lets"
        who = f"{_listed(failed)}, which it waits for, did not complete"
        return f"{who}: {resume} {lets} this one begin, too; or cancel it"
    if first:
        shown = ", ".join(f"hpc-train status {run_word(it.path)}" for it in first.values())
        return f"one of {_listed(list(first))}, which it waits for, did not complete: {shown}"
    return ""


def _listed(runs: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(runs[:-1]), runs[-1])))


def _asked(run: RunDir, events: Sequence[Event], job: JobView) -> Asked:
    plan, attempts = known_plan(run), attempts_in(events)
    saved = any(attempt.saved_step for attempt in attempts)
    # The run of a rendered script has no config in which a key could be changed.
    word = run_word(run.path) if run.config.is_file() else ""
    return Asked(
        options=None if plan is None else dict(plan.slurm.options),
        has_run=any(attempt.job_id == job.job_id for attempt in attempts),
        run=word,
        resumable=word if saved else "",
        start=job.start,
        dependency=job.dependency,
    )
