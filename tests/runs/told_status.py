"""Histories of runs, and what their status tells."""

from __future__ import annotations

from pathlib import Path

from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.runs.status import RunStatus, run_status

SUBMITTED = Event(100.0, EventKind.SUBMITTED, {"job_id": "7", "backend": "slurm"})

STARTED = Event(110.0, EventKind.ATTEMPT_STARTED, {"attempt": 0, "job_id": "7", "nodes": ["n1"]})

PREEMPTED = Event(
    150.0,
    EventKind.ATTEMPT_ENDED,
    {
        "attempt": 0,
        "outcome": "preempted",
        "reason": "preempted by Slurm",
        "last_step": 12,
        "saved_step": 12,
    },
)

DECIDED = Event(151.0, EventKind.DECIDED, {"attempt": 0, "action": "requeue", "reason": "goes on"})

WENT_ON = Event(152.0, EventKind.WENT_ON, {"attempt": 0, "action": "requeue", "job_id": "7"})

CANCEL = Event(160.0, EventKind.CANCEL_REQUESTED, {"by": "me"})

ENDED = Event(170.0, EventKind.RUN_ENDED, {"state": "completed", "reason": "complete"})


def status(
    *events: Event,
    view: RunState | None = None,
    now: float = 1000.0,
    beat: Heartbeat | None = None,
) -> RunStatus:
    return run_status(
        RunDir(Path("/runs/digits/one")),
        events,
        SchedulerView(view),
        beat=beat,
        metrics={"val_acc": 0.98765},
        now=now,
    )


def told(view: SchedulerView, *events: Event, step: int | None = None, now: float = 1000.0):
    beat = None
    if step is not None:
        at = {"time": now, "moved": now}
        beat = Heartbeat(rank=0, node="n", pid=1, phase="train", step=step, **at)
    run = RunDir(Path("/runs/digits/one"))
    return run_status(run, events, view, beat=beat, metrics={}, now=now)
