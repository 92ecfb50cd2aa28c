"""The state of a run, from its history and what the scheduler says of its job. Pure."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpc_train.plan.evaluations import NEEDED
from hpc_train.plan.states import ALL_FINISHED, Outcome, RunState
from hpc_train.runs.events import (
    BEGINNINGS,
    Event,
    EventKind,
    end_of,
    has_begun,
    is_cancel_asked,
    last_seen,
    since_last,
)
from hpc_train.runs.forecast import Forecast, TimeLimit, forecast_end
from hpc_train.runs.history import AttemptRecord, attempts_in, newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.left_open import LastKnown, with_known_end
from hpc_train.runs.metrics import Metrics
from hpc_train.runs.ranks import Heartbeat
from hpc_train.runs.saved_models import SavedModel, best_models, newest_undecided
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.runs.status_hints import StatusHints
from hpc_train.runs.unsaid_ends import (
    UNEXPLAINED,
    UNOPENED_LOG,
    cancelled_without_an_end,
    unopened,
    without_an_end,
)

SCHEMA_VERSION = 1
FOREGROUND = "foreground"  # the backend of `hpc-train run`
SESSION = "session"  # the backend of a script of the user's with a Session
# A job that was submitted this recently may not have reached the scheduler's lists yet.
FRESH_S = 60.0


@dataclass(frozen=True, kw_only=True)
class RunStatus(StatusHints):
    """A run at a glance, and its attempts."""

    run: str
    name: str
    run_dir: str
    state: RunState
    job_id: str
    backend: str
    reason: str = ""
    trouble: str = ""  # why a pending job does not start, in the config's words
    meaning: str = ""  # what the reason of a pending job means
    moved: tuple[str, ...] = ()  # what is to be done for a pending job to find its run
    resume_with: str = ""  # KEY=VALUE without which it would wait in vain once more
    waiting: str = ""  # why no rank of an attempt that runs has begun yet, or trains on
    silence: str = ""  # why Slurm could not tell anything: `state` is what the run itself tells
    last_words: tuple[str, ...] = ()  # of the job's log, where the run left no end
    submitted: float | None = None
    start_estimate: str = ""
    step: int = 0
    beat: Heartbeat | None = None  # of rank 0, while an attempt runs
    forecast: Forecast | None = None  # of a job that runs under a time limit
    metrics: Mapping[str, Any] = field(default_factory=dict)
    attempts: tuple[AttemptRecord, ...] = ()
    best_models: tuple[SavedModel, ...] = ()  # one for each metric that decided
    newest_model: SavedModel | None = None  # of those about which no metric decided
    torn_models: tuple[SavedModel, ...] = ()  # in whose place one of these stands

    @property
    def evaluates(self) -> bool:
        """Whether it tests, validates or predicts, and so takes no steps."""
        return bool(self.attempts) and self.attempts[-1].verb in NEEDED

    @property
    def weights(self) -> str:
        """Where the weights come from with which its model begins; empty for fresh ones."""
        return self.attempts[0].weights if self.attempts else ""

    @property
    def stands(self) -> str:
        """Its state, and why where that is known: `pending: Resources`."""
        why = self.trouble or self.reason or self.waiting
        return f"{self.state.value}{f': {why}' if why else ''}"

    @property
    def meant(self) -> str:
        """What the reason of a pending job means, in a part of a line."""
        more = "its folder was moved: `hpc-train status` says more" if self.moved else ""
        return "; ".join(filter(None, (self.meaning, more)))

    @property
    def early_end(self) -> str:
        """Why it is complete before its last step, or what of it is; empty where it is not so."""
        newest = self.attempts[-1] if self.attempts else None
        if self.state is not RunState.COMPLETED or newest is None:
            return ""
        return "" if newest.reason == ALL_FINISHED else newest.reason

    @property
    def failed_saves(self) -> str:
        """How many of the newest saves the storage refused, and its words; empty if it did not."""
        if self.beat is not None:
            return self.beat.failed_saves.text if self.beat.failed_saves else ""
        return self.attempts[-1].failed_saves if self.attempts else ""

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
            "reason": self.reason or self.waiting,
            "job_id": self.job_id,
            "backend": self.backend,
            "scheduler": "silent" if self.silence else None,
            "last_words": list(self.last_words),
            "submitted": self.submitted,
            "start_estimate": self.start_estimate,
            "step": self.step,
            "failed_saves": self.failed_saves or None,
            "progress": _progress_json(self.beat),
            "limit_in_s": round(self.forecast.limit_in_s) if self.forecast else None,
            "requeues_expected": self.forecast.requeues if self.forecast else None,
            "attempts": [_attempt_json(attempt) for attempt in self.attempts],
            "metrics": dict(self.metrics),
            "weights": self.weights or None,
            "best_models": [model.to_json() for model in self.best_models],
            "torn_models": [model.to_json() for model in self.torn_models],
        }


def run_status(
    run: RunDir,
    events: Sequence[Event],
    view: SchedulerView,
    *,
    beat: Heartbeat | None,
    metrics: Mapping[str, Any],
    now: float,
    models: Sequence[SavedModel] = (),
    saved_step: int = 0,
) -> RunStatus:
    """Put the run's state together.

    Args:
        view: What the scheduler knows of the run's newest job.
        beat: Rank 0's newest sign of life.
        metrics: The final metrics, or the newest known.
        now: Seconds since the epoch.
        models: As `saved_models.without_torn` leaves them.
        saved_step: The newest checkpoint, which an attempt without an end may have left.
    """
    step = _step(told := attempts_in(events), beat.step if beat else 0)
    state, reason = _stands(run, events, told, view, beat, step, now)
    attempts = with_known_end(told, events, state, _known(beat, now, step, saved_step))
    beat_now = beat if state is RunState.RUNNING and _is_open(attempts) else None
    return RunStatus(
        run=run.run_id,
        name=run.name,
        run_dir=str(run.path),
        state=state,
        job_id=newest_job_id(events),
        backend=_backend(events),
        reason=reason,
        trouble="" if state.ended else view.trouble,
        meaning=view.meaning if state is RunState.PENDING and not view.trouble else "",
        moved=view.moved if state is RunState.PENDING and not view.trouble else (),
        resume_with=view.resume_with,
        waiting=_waiting(state, events, view, beat, is_open=_is_open(attempts)),
        silence=view.silence,
        last_words=view.last_words if state in UNEXPLAINED else (),
        submitted=next((it.time for it in events if it.kind is EventKind.SUBMITTED), None),
        start_estimate=view.start if state is RunState.PENDING else "",
        beat=beat_now,
        forecast=_forecast(state, beat_now, attempts, view.limit, now),
        step=step,
        metrics=Metrics(metrics, f"{run.name} ({run.run_id}) is {state.value}", reason),
        attempts=tuple(attempts),
        best_models=tuple(best_models(models).values()),
        newest_model=newest_undecided(models),
    )


def _backend(events: Sequence[Event]) -> str:
    sent = [it.get("backend", "") for it in events if it.kind is EventKind.SUBMITTED]
    return str(sent[-1]) if sent else ""


def _known(beat: Heartbeat | None, now: float, step: int, saved_step: int) -> LastKnown:
    return LastKnown(now, [beat.time] if beat else [], step, saved_step)


def _stands(
    run: RunDir,
    events: Sequence[Event],
    attempts: Sequence[AttemptRecord],
    view: SchedulerView,
    beat: Heartbeat | None,
    step: int,
    now: float,
) -> tuple[RunState, str]:
    """Its state and why; while Slurm is silent, what was known last."""
    state, reason = _state(run, events, attempts, view, now)
    if view.silence and not end_of(events):
        reason = _last_known(view, events, _far(state, step, beat, now), reason)
    return state, reason


def _waiting(
    state: RunState,
    events: Sequence[Event],
    view: SchedulerView,
    beat: Heartbeat | None,
    *,
    is_open: bool,
) -> str:
    """Why its ranks have not begun, do not train on, or are about to leave."""
    if state is not RunState.RUNNING or view.silence:
        return ""
    if is_cancel_asked(events):
        asked = [event for event in events if event.kind is EventKind.CANCEL_REQUESTED][-1]
        on_slurm = view.standing or any(event.get("backend") == "slurm" for event in events)
        limit = "Slurm's KillWait, 30 s as a rule" if on_slurm else "60 s"
        return (
            f"cancel was asked for at {time.strftime('%H:%M:%S', time.localtime(asked.time))}; its"
            f" ranks save and leave at the end of their step, and are killed after {limit}"
        )
    if not is_open:
        return ""
    return view.standing or (view.waiting if beat is None else "")


def _last_known(view: SchedulerView, events: Sequence[Event], stands: str, reason: str) -> str:
    """What is told while Slurm is silent: what it said last, or else what the run tells."""
    words = f"{stands}: {reason}" if reason else stands
    told = _told_end(events)
    log_ends = "" if told or attempts_in(events) else "".join(view.last_words[-1:])
    known = f"the job has begun, and its log ends: {log_ends}" if log_ends else words
    recent = since_last(events, *BEGINNINGS)
    asked = not told and any(event.kind is EventKind.CANCEL_REQUESTED for event in recent)
    cancel = ", and it was asked to save and leave (cancel)" if asked else ""
    return f"{view.silence}; last known: {known}{cancel}"


def _forecast(
    state: RunState,
    beat: Heartbeat | None,
    attempts: Sequence[AttemptRecord],
    limit: TimeLimit | None,
    now: float,
) -> Forecast | None:
    # The end of a job that Slurm is ending is now.
    if limit is None or state is not RunState.RUNNING or limit.at <= now:
        return None
    return forecast_end(beat, attempts, limit, now)


def _step(attempts: Sequence[AttemptRecord], told: int) -> int:
    """Where the run stands: what an attempt lost no longer counts once the next one has begun."""
    if not attempts:
        return told
    newest = attempts[-1]
    return newest.last_step if newest.ended is not None else max(told, newest.first_step)


def _is_open(attempts: Sequence[AttemptRecord]) -> bool:
    return bool(attempts) and attempts[-1].ended is None


def _state(
    run: RunDir,
    events: Sequence[Event],
    attempts: Sequence[AttemptRecord],
    view: SchedulerView,
    now: float,
) -> tuple[RunState, str]:
    recent = since_last(events, *BEGINNINGS)
    if ended := end_of(events):
        return RunState(ended.get("state")), _why(ended, attempts)
    if view.state in (RunState.PENDING, RunState.RUNNING):
        return view.state, view.trouble or view.reason
    begins = has_begun(events)
    began = recent[0].time if recent else now
    if view.silence:
        return _state_in_silence(events, attempts, view)
    if any(event.kind is EventKind.CANCEL_REQUESTED for event in recent):
        return RunState.CANCELLED, cancelled_without_an_end(recent[0].kind, attempts, view)
    on_slurm = any(event.get("backend") == "slurm" for event in events)
    if view.state is None and (told := _told_end(events)):  # Slurm forgets jobs
        return told
    if on_slurm and now - began < FRESH_S and view.state is None:
        return RunState.PENDING, "just submitted"
    went_on = attempts and attempts[-1].went_on_as
    if went_on and now - began < FRESH_S:
        return RunState.PENDING, attempts[-1].decision_reason
    state = view.state or RunState.LOST
    if state is RunState.CANCELLED and recent:  # by scancel
        return state, cancelled_without_an_end(recent[0].kind, attempts, view)
    if state is RunState.FAILED and view.reason.startswith(UNOPENED_LOG) and not view.last_words:
        return state, unopened(run.job_log(newest_job_id(events)), attempts, view)
    return state, without_an_end(state, view, begun=begins, on_slurm=on_slurm)


def _told_end(events: Sequence[Event]) -> tuple[RunState, str] | None:
    """The end that Slurm has told of once, for when it says nothing or has forgotten the job."""
    told = last_seen(events)
    state = RunState(told.get("state")) if told else RunState.PENDING
    return (state, str(told.get("reason", ""))) if told and state.ended else None


def _state_in_silence(
    events: Sequence[Event], attempts: Sequence[AttemptRecord], view: SchedulerView
) -> tuple[RunState, str]:
    """What was told last, or else what the run itself tells."""
    has_log = not attempts and bool(view.last_words)
    itself = RunState.RUNNING if has_begun(events) or has_log else RunState.PENDING
    return _told_end(events) or (itself, "")


def _far(state: RunState, step: int, beat: Heartbeat | None, now: float) -> str:
    """`running, step 184, 3 min ago` of what runs, else the state alone."""
    if state is not RunState.RUNNING:
        return str(state.value)
    minutes = int(now - beat.time) // 60 if beat else 0
    return f"{state.value}, step {step}" + (f", {minutes} min ago" if minutes > 0 else "")


def _why(event: Event, attempts: Sequence[AttemptRecord]) -> str:
    """What ended the run, and why it does not go on where that is not always so."""
    decision = str(event.get("reason", ""))
    newest = attempts[-1] if attempts else None
    if newest is None or newest.reason in ("", ALL_FINISHED):
        return decision
    usual = newest.outcome is not None and decision == newest.outcome.follows.reason
    return newest.reason if usual or decision == newest.reason else f"{newest.reason} ({decision})"


def _progress_json(beat: Heartbeat | None) -> dict[str, Any] | None:
    if beat is None:
        return None
    told = ("phase", "step", "steps", "epoch", "epochs", "steps_per_s", "eta_s", "metrics")
    return {name: getattr(beat, name) for name in told}


def _attempt_json(attempt: AttemptRecord) -> dict[str, Any]:
    document = dataclasses.asdict(attempt)
    return document | {
        "outcome": attempt.outcome.value if attempt.outcome else None,
        "steps_lost": attempt.steps_lost,
    }
