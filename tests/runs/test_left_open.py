"""An attempt that was killed with its job: over once its run is, or is resumed, and no later."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hpc_train.plan.states import Outcome, RunState
from hpc_train.report.goodput import AttemptFacts, goodput
from hpc_train.runs.events import Event, EventKind, seen
from hpc_train.runs.history_text import history_lines
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.runs.status import RunStatus, run_status
from tests.runs.told_status import CANCEL, PREEMPTED, STARTED, SUBMITTED, WENT_ON

BEAT = Heartbeat(rank=0, node="n", pid=1, phase="train", step=31, time=190.0, moved=190.0)
ASKED = "`hpc-train cancel` asked for it"
SCANCELLED = "the job was cancelled (scancel)"


def again(time: float, job: str = "8") -> Event:
    return Event(time, EventKind.SUBMITTED, {"job_id": job, "backend": "slurm"})


def started(time: float, attempt: int, job: str) -> Event:
    return Event(time, EventKind.ATTEMPT_STARTED, {"attempt": attempt, "job_id": job})


def told(view: RunState | None, *events: Event, now: float = 5000.0) -> RunStatus:
    return run_status(
        RunDir(Path("/runs/digits/one")),
        events,
        SchedulerView(view),
        beat=BEAT,
        metrics={},
        now=now,
        saved_step=20,
    )


@pytest.mark.parametrize("view", [RunState.PENDING, RunState.RUNNING])
def test_a_cancelled_attempt_is_over_while_the_resumed_run_waits_or_starts(view: RunState) -> None:
    for now in (400.0, 90000.0):
        status = told(view, SUBMITTED, STARTED, CANCEL, again(300.0), now=now)
        (attempt,) = status.attempts
        assert (attempt.outcome, attempt.ended, attempt.reason) == (Outcome.CANCELLED, 190, ASKED)
        lines = list(history_lines(status, now))
        assert "cancelled after 1 min 20 s  job 7" in "\n".join(lines)
        assert f"    what     {ASKED}" in lines
        assert "    steps    0 to 31, 11 lost" in lines
        assert status.beat is None


def test_a_job_that_somebody_scancelled_is_told_as_that_once_slurm_has_said_so() -> None:
    before = [SUBMITTED, STARTED]
    assert told(RunState.CANCELLED, *before).attempts[0].reason == SCANCELLED
    kept = seen(before, RunState.CANCELLED, "", 220.0)
    assert told(RunState.PENDING, *before, kept, again(300.0)).attempts[0].reason == SCANCELLED
    unknown = told(RunState.PENDING, *before, again(300.0))
    assert unknown.outcome is None
    assert "left no end, 1 min 20 s  job 7" in "\n".join(history_lines(unknown, 5000.0))


@pytest.mark.parametrize("state", [RunState.CANCELLED, RunState.FAILED, RunState.TIMED_OUT, None])
def test_what_an_attempt_took_does_not_grow_after_its_runs_end(state: RunState | None) -> None:
    texts = {
        now: "\n".join(history_lines(told(state, SUBMITTED, STARTED, now=now), now))
        for now in (5000.0, 90000.0)
    }
    assert texts[5000.0] == texts[90000.0]
    assert "1 min 20 s  job 7" in texts[5000.0]


def test_an_attempt_that_goes_on_is_open() -> None:
    for events in ([SUBMITTED, STARTED], [SUBMITTED, STARTED, CANCEL]):
        (attempt,) = told(RunState.RUNNING, *events, now=200.0).attempts
        assert (attempt.ended, attempt.outcome) == (None, None)
    unsubmitted = told(RunState.RUNNING, STARTED, now=200.0)
    assert unsubmitted.attempts[0].ended is None


def test_a_cancel_of_the_resumed_run_is_none_of_the_attempt_before() -> None:
    status = told(RunState.PENDING, SUBMITTED, STARTED, again(300.0), CANCEL, again(400.0, "9"))
    assert status.outcome is None


def test_only_the_newest_attempt_can_be_open_and_the_others_keep_their_ends() -> None:
    events = [SUBMITTED, STARTED, PREEMPTED, WENT_ON, started(155, 1, "7"), CANCEL, again(300.0)]
    first, second = told(RunState.PENDING, *events).attempts
    assert (first.outcome, first.ended) == (Outcome.PREEMPTED, 150)
    assert (second.outcome, second.ended) == (Outcome.CANCELLED, 190)


def test_a_clock_that_is_ahead_or_behind_makes_no_attempt_longer_than_it_was() -> None:
    status = told(RunState.PENDING, SUBMITTED, STARTED, again(120.0), now=130.0)
    assert status.attempts[0].ended == 130
    early = dataclasses.replace(STARTED, time=250.0)
    assert told(RunState.PENDING, SUBMITTED, early, again(300.0)).attempts[0].ended == 250


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ([], "cancelled before it began"),
        ([CANCEL], "cancelled before it began"),
        ([STARTED, CANCEL], "cancelled before attempt 1 began"),
        ([STARTED, PREEMPTED], "cancelled before attempt 1 began"),
        (
            [STARTED, PREEMPTED, WENT_ON, started(155, 1, "7"), CANCEL],
            "cancelled before attempt 2 began",
        ),
    ],
)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_resumed_run_that_is_cancelled_in_the_queue_had_begun_before(
    before: list[Event], reason: str, times: int, is_asked: bool
) -> None:
    resumed = [
        event
        for number in range(times)
        for event in (again(300.0 + number, f"{8 + number}"), *([CANCEL] if is_asked else []))
    ]
    view = None if is_asked else RunState.CANCELLED
    status = told(view, SUBMITTED, *before, *resumed)
    assert (status.state, status.reason) == (RunState.CANCELLED, reason)


def test_the_report_counts_no_wait_and_no_resume_as_training() -> None:
    def shares(*events: Event) -> dict[int, dict[str, float]]:
        told = goodput(
            events, {0: AttemptFacts(beat=BEAT)}, gpus_per_node=0, until=5000.0, is_open=True
        )
        return {
            it.attempt: {"took": it.ended - (it.started or it.began), **it.seconds}
            for it in told.attempts
        }

    waits = shares(SUBMITTED, STARTED, CANCEL, again(300.0))
    assert (waits[0]["took"], waits[1]["queue"]) == (80, 4700)
    end = {"attempt": 0, "outcome": "cancelled", "ended": 190.0}
    closed = Event(700.0, EventKind.ATTEMPT_ENDED, end)
    runs = shares(SUBMITTED, STARTED, CANCEL, again(300.0), closed, started(701.0, 1, "8"))
    assert (runs[0]["took"], runs[1]["queue"]) == (80, 401)
    requeued = shares(SUBMITTED, STARTED, closed, started(701.0, 1, "7"))
    assert (requeued[0]["took"], requeued[1]["queue"]) == (80, 511)
