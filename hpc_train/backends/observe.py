"""Looking at runs from outside: their histories, their processes, and one Slurm query for all."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc_train.errors import HpcTrainError, SlurmError
from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in, newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lock import is_held
from hpc_train.runs.ranks import read_heartbeat
from hpc_train.runs.status import RunStatus, SchedulerView, run_status
from hpc_train.slurm.command import is_available
from hpc_train.slurm.control import cancel
from hpc_train.slurm.jobs import JobView, query_jobs
from hpc_train.slurm.refusals import explain_pending

__all__ = ["cancel_run", "observe"]


def observe(
    directories: Sequence[RunDir],
    now: float,
    *,
    ask_slurm: bool = True,
    known: RunState | None = None,
) -> list[RunStatus]:
    """The status of each run.

    Args:
        directories: The runs.
        now: Seconds since the epoch.
        ask_slurm: False to look only at what the runs themselves have written.
        known: The state to assume of a job that Slurm is not asked about.
    """
    histories = [read_events(directory.events) for directory in directories]
    views = _slurm_views(histories) if ask_slurm else {}
    unknown = SchedulerView(None if ask_slurm else known)
    return [
        run_status(
            directory,
            events,
            _view(directory, events, views, unknown),
            step=_step(directory),
            metrics=_metrics(directory),
            now=now,
        )
        for directory, events in zip(directories, histories, strict=True)
    ]


def cancel_run(directory: RunDir, status: RunStatus) -> None:
    """Record that it is wanted, then end the job; the history tells it from a preemption.

    Raises:
        SlurmError: when Slurm refuses.
        HpcTrainError: when a local run belongs to another machine.
    """
    data = {"by": os.environ.get("USER", str(os.getuid()))}
    append_event(directory.events, Event(time.time(), EventKind.CANCEL_REQUESTED, data))
    if status.backend == "slurm" or _is_slurm_job(directory):
        cancel(status.job_id)
        return
    attempt = status.attempts[-1] if status.attempts else None
    if attempt is not None and attempt.host != socket.gethostname():
        raise HpcTrainError(
            f"{status.name} runs on {attempt.host}, and this is {socket.gethostname()}",
            f"cancel it there, or make the file {directory.stop}",
        )
    pid = attempt.pid if attempt is not None and attempt.ended is None else int(status.job_id)
    if is_held(directory.lock) or _is_submitit(pid):
        os.kill(pid, signal.SIGTERM)


def _is_slurm_job(directory: RunDir) -> bool:
    return any(event.get("cluster") for event in read_events(directory.events))


def _slurm_views(histories: Sequence[Sequence[Event]]) -> dict[str, JobView]:
    """One query for the jobs of all runs that have not ended by their own word."""
    open_jobs = [
        job_id
        for events in histories
        if _backend(events) == "slurm"
        and not _has_ended(events)
        and (job_id := newest_job_id(events))
    ]
    if not open_jobs or not is_available("squeue"):
        return {}
    try:
        return query_jobs(open_jobs)
    except SlurmError:
        return {}  # the controller is away: the histories are all there is


def _view(
    directory: RunDir,
    events: Sequence[Event],
    views: dict[str, JobView],
    unknown: SchedulerView,
) -> SchedulerView:
    if _has_ended(events):
        return unknown
    if _backend(events) != "slurm":
        return SchedulerView(_local_state(directory, events))
    job = views.get(newest_job_id(events))
    if job is None:
        return unknown
    return SchedulerView(job.state, job.reason, job.start, explain_pending(job.reason))


def _local_state(directory: RunDir, events: Sequence[Event]) -> RunState | None:
    if is_held(directory.lock):
        return RunState.RUNNING
    job_id = newest_job_id(events)
    if job_id.isdigit() and _is_submitit(int(job_id)):
        attempts = attempts_in(events)
        return RunState.RUNNING if attempts else RunState.PENDING
    return None


def _is_submitit(pid: int) -> bool:
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


def _step(directory: RunDir) -> int:
    beat = read_heartbeat(directory.latest_attempt.heartbeat(0))
    return beat.step if beat else 0


def _metrics(directory: RunDir) -> dict[str, Any]:
    try:
        document = json.loads((directory.metrics / "final.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
