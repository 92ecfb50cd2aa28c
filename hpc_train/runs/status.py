"""The state of a run, put together from its history and what the scheduler says of its job. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpc_train.plan.states import Outcome, RunState
from hpc_train.runs.events import Event, EventKind
from hpc_train.runs.history import AttemptRecord, attempts_in, newest_job_id
from hpc_train.runs.layout import RunDir

__all__ = ["SCHEMA_VERSION", "RunStatus", "SchedulerView", "run_status"]

SCHEMA_VERSION = 1
# A job that was submitted this recently may not have reached the scheduler's lists yet.
FRESH_S = 60.0


@dataclass(frozen=True)
class SchedulerView:
    """What is known of the run's job from outside: Slurm's words, or a local process.

    Attributes:
        state: None where nobody knows the job (any more).
        trouble: Why a pending job will never start, in the config's words.
    """

    state: RunState | None
    reason: str = ""
    start: str = ""
    trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """A run at a glance, and its attempts."""

    run: str
    name: str
    run_dir: str
    state: RunState
    job_id: str
    backend: str
    reason: str = ""
    trouble: str = ""  # why a pending job will never start, in the config's words
    submitted: float | None = None
    start_estimate: str = ""
    step: int = 0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    attempts: tuple[AttemptRecord, ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        """How the newest attempt ended; None while it runs or before there is one."""
        return self.attempts[-1].outcome if self.attempts else None

    def to_json(self) -> dict[str, Any]:
        """The document of `hpc-train status --json`."""
        return {
            "schema_version": SCHEMA_VERSION,
            "run": self.run,
            "name": self.name,
            "run_dir": self.run_dir,
            "state": self.state.value,
            "outcome": self.outcome.value if self.outcome else None,
            "reason": self.reason,
            "job_id": self.job_id,
            "backend": self.backend,
            "submitted": self.submitted,
            "start_estimate": self.start_estimate,
            "step": self.step,
            "attempts": [_attempt_json(attempt) for attempt in self.attempts],
            "metrics": dict(self.metrics),
        }


def run_status(
    run: RunDir,
    events: Sequence[Event],
    view: SchedulerView,
    *,
    step: int,
    metrics: Mapping[str, Any],
    now: float,
) -> RunStatus:
    """Put the run's state together.

    Args:
        view: What the scheduler knows of the run's newest job.
        step: The newest step that a rank has told of.
        metrics: The final metrics, or the newest known.
        now: Seconds since the epoch.
    """
    attempts = attempts_in(events)
    submissions = [event for event in events if event.kind is EventKind.SUBMITTED]
    state, reason = _state(events, attempts, view, now)
    return RunStatus(
        run=run.run_id,
        name=run.name,
        run_dir=str(run.path),
        state=state,
        job_id=newest_job_id(events),
        backend=submissions[-1].get("backend", "") if submissions else "",
        reason=reason,
        trouble=view.trouble,
        submitted=submissions[0].time if submissions else None,
        start_estimate=view.start if state is RunState.PENDING else "",
        step=_step(attempts, step),
        metrics=metrics,
        attempts=tuple(attempts),
    )


def _step(attempts: Sequence[AttemptRecord], told: int) -> int:
    """Where the run stands: what an attempt lost no longer counts once the next one has begun."""
    if not attempts:
        return told
    newest = attempts[-1]
    return newest.last_step if newest.ended is not None else max(told, newest.first_step)


def _state(
    events: Sequence[Event], attempts: Sequence[AttemptRecord], view: SchedulerView, now: float
) -> tuple[RunState, str]:
    ended = [event for event in events if event.kind is EventKind.RUN_ENDED]
    begun = [
        event.time
        for event in events
        if event.kind in (EventKind.SUBMITTED, EventKind.ATTEMPT_STARTED, EventKind.WENT_ON)
    ]
    newest = max(begun, default=now)
    if ended and ended[-1].time >= newest:
        return RunState(ended[-1].get("state")), _why(ended[-1], attempts)
    if view.state in (RunState.PENDING, RunState.RUNNING):
        return view.state, view.trouble or view.reason
    if any(event.kind is EventKind.CANCEL_REQUESTED and event.time >= newest for event in events):
        return RunState.CANCELLED, "cancelled before it began"
    on_slurm = any(event.get("backend") == "slurm" for event in events)
    if on_slurm and now - newest < FRESH_S and view.state is None:
        return RunState.PENDING, "just submitted"
    went_on = attempts and attempts[-1].went_on_as
    if went_on and now - newest < FRESH_S:
        return RunState.PENDING, attempts[-1].decision_reason
    if view.state is None:
        return RunState.LOST, "the scheduler knows no job of this run, and it left no end"
    return view.state, view.reason


def _why(event: Event, attempts: Sequence[AttemptRecord]) -> str:
    decision = str(event.get("reason", ""))
    if event.get("state") == RunState.COMPLETED.value or not attempts:
        return decision
    return f"{attempts[-1].reason} ({decision})" if attempts[-1].reason else decision


def _attempt_json(attempt: AttemptRecord) -> dict[str, Any]:
    document = dataclasses.asdict(attempt)
    return document | {
        "outcome": attempt.outcome.value if attempt.outcome else None,
        "steps_lost": attempt.steps_lost,
    }
