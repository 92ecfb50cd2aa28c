"""Looking at runs from outside: their histories, their processes, and one Slurm query for all."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpc_train.errors import SlurmError
from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind, read_events
from hpc_train.runs.history import attempts_in, newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lock import is_held
from hpc_train.runs.log_tail import last_words
from hpc_train.runs.ranks import read_heartbeat
from hpc_train.runs.saved_models import best_models, read_models
from hpc_train.runs.status import SESSION, RunStatus, SchedulerView, run_status
from hpc_train.slurm.command import is_available
from hpc_train.slurm.jobs import JobView, query_jobs
from hpc_train.slurm.refusals import explain_pending

__all__ = ["is_submitit", "observe"]

SILENT_S = 60.0  # a file system may show a new file that late (nfs(5), ac)


def observe(
    directories: Sequence[RunDir],
    now: float,
    *,
    ask_slurm: bool = True,
    known: SchedulerView | None = None,
    histories: Sequence[Sequence[Event]] | None = None,
) -> list[RunStatus]:
    """The status of each run.

    Args:
        directories: The runs.
        now: Seconds since the epoch.
        ask_slurm: False to look only at what the runs themselves have written.
        known: What to assume of a job that Slurm is not asked about: its last answer.
        histories: The events of each run, where some runs have no folder yet.
    """
    if histories is None:
        histories = [read_events(directory.events) for directory in directories]
    views, silence = _slurm_views(histories) if ask_slurm else ({}, "")
    unknown = SchedulerView(None, silence=silence) if ask_slurm else known or SchedulerView(None)
    return [
        run_status(
            directory,
            events,
            _view(directory, events, views, unknown),
            beat=read_heartbeat(directory.latest_attempt.heartbeat(0)),
            metrics=_metrics(directory),
            now=now,
            best_models=tuple(best_models(read_models(directory)).values()),
        )
        for directory, events in zip(directories, histories, strict=True)
    ]


def _slurm_views(histories: Sequence[Sequence[Event]]) -> tuple[dict[str, JobView], str]:
    """One query for the jobs of all runs that have not ended by their own word.

    Returns:
        The jobs by id, and why there are none where Slurm could not be asked.
    """
    open_jobs = [
        job_id
        for events in histories
        if _backend(events) == "slurm"
        and not _has_ended(events)
        and (job_id := newest_job_id(events))
    ]
    if not open_jobs:
        return {}, ""
    if not is_available("squeue"):
        return {}, "there is no squeue on this machine's PATH"
    try:
        return query_jobs(open_jobs), ""
    except SlurmError:
        return {}, "Slurm does not answer"


def _view(
    directory: RunDir,
    events: Sequence[Event],
    views: dict[str, JobView],
    unknown: SchedulerView,
) -> SchedulerView:
    if _has_ended(events):
        return SchedulerView(None)
    if _backend(events) != "slurm":
        return SchedulerView(_local_state(directory, events))
    job_id = newest_job_id(events)
    job = views.get(job_id)
    if job is None:
        return replace(unknown, last_words=last_words(directory.job_log(job_id)))
    words = last_words(directory.job_log(job_id)) if job.state.ended else ()
    trouble = explain_pending(job.reason)
    if trouble and job.reason.startswith("DependencyNeverSatisfied"):
        trouble = _waits_in_vain(events) or trouble
    return SchedulerView(job.state, job.reason, job.start, trouble, last_words=words)


def _waits_in_vain(events: Sequence[Event]) -> str:
    """Of a run that waits for another one (`submit --after`), which has ended otherwise."""
    first = [str(event.get("run")) for event in events if event.kind is EventKind.WAITS_FOR]
    if not first:
        return ""
    return (
        f"{first[-1]}, which it waits for, did not complete: hpc-train resume {first[-1]} lets this"
        " one begin, too; or cancel it"
    )


def _local_state(directory: RunDir, events: Sequence[Event]) -> RunState | None:
    if is_held(directory.lock) or _is_session_alive(directory, events):
        return RunState.RUNNING
    job_id = newest_job_id(events)
    if job_id.isdigit() and is_submitit(int(job_id)):
        attempts = attempts_in(events)
        return RunState.RUNNING if attempts else RunState.PENDING
    # A shape of a bench waits for the one before; in the foreground there is no id at any time.
    return RunState.PENDING if not job_id and _backend(events) == "local" else None


def _is_session_alive(directory: RunDir, events: Sequence[Event]) -> bool:
    """Whether a script with a Session gives signs of life: nobody else knows its processes."""
    if _backend(events) != SESSION:
        return False
    try:
        beaten = directory.latest_attempt.heartbeat(0).stat().st_mtime
    except OSError:
        return False
    return time.time() - beaten < SILENT_S


def is_submitit(pid: int) -> bool:
    """Whether a process is submitit's local controller, and not a stranger with its number."""
    try:
        return b"submitit" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _backend(events: Sequence[Event]) -> str:
    kinds = [event.get("backend") for event in events if event.kind is EventKind.SUBMITTED]
    return str(kinds[-1]) if kinds else ""


def _has_ended(events: Sequence[Event]) -> bool:
    for event in reversed(events):
        if event.kind is EventKind.RUN_ENDED:
            return True
        if event.kind in (EventKind.SUBMITTED, EventKind.ATTEMPT_STARTED, EventKind.WENT_ON):
            return False
    return False


def _metrics(directory: RunDir) -> dict[str, Any]:
    try:
        document = json.loads(directory.final_metrics.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
