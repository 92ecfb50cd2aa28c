"""The words of a status where Slurm is silent, a run has ended, or a clock is off."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from hpc_train.plan.states import ALL_FINISHED, Outcome, RunState
from hpc_train.runs.events import Event, EventKind, seen
from hpc_train.runs.history_text import history_lines
from hpc_train.runs.log_tail import last_words
from hpc_train.runs.run_table import COLUMNS
from hpc_train.runs.scheduler_view import SchedulerView
from tests.runs.told_status import (
    CANCEL,
    DECIDED,
    ENDED,
    PREEMPTED,
    STARTED,
    SUBMITTED,
    WENT_ON,
    status,
    told,
)

SILENT = SchedulerView(None, silence="Slurm does not answer")


@pytest.mark.parametrize(
    ("events", "step", "state", "reason"),
    [
        ([SUBMITTED], None, "pending", "pending"),
        ([SUBMITTED, STARTED], None, "running", "running, step 0"),
        ([SUBMITTED, STARTED], 184, "running", "running, step 184"),
        (
            [SUBMITTED, STARTED, CANCEL],
            184,
            "running",
            "running, step 184, and it was asked to save and leave (cancel)",
        ),
        ([SUBMITTED, STARTED, PREEMPTED, DECIDED, WENT_ON], 12, "pending", "pending"),
        ([SUBMITTED, STARTED, ENDED], 184, "completed", None),
    ],
)
def test_a_slurm_that_does_not_answer_leaves_what_the_run_itself_tells(
    events: list[Event], step: int | None, state: str, reason: str | None
) -> None:
    # Just submitted, a minute after, or long ago: silence is no news about a job.
    for now in (171.0, 231.0, 1e6):
        now_known = told(SILENT, *events, step=step, now=now)
        assert now_known.state == state
        if reason is not None:
            assert now_known.reason == f"Slurm does not answer; last known: {reason}"
        assert now_known.silence == "Slurm does not answer"


def test_a_silent_slurm_leaves_what_the_log_of_the_job_tells() -> None:
    view = SchedulerView(None, silence="Slurm does not answer", last_words=("a", "no such venv"))
    known = "last known: the job has begun, and its log ends: no such venv"
    assert told(view, SUBMITTED).reason == f"Slurm does not answer; {known}"
    assert told(view, SUBMITTED).state is RunState.RUNNING
    assert "log ends" not in told(view, SUBMITTED, STARTED).reason


FORGOTTEN = SchedulerView(None)


@pytest.mark.parametrize("before", [[SUBMITTED], [SUBMITTED, STARTED]])
def test_an_end_that_slurm_has_told_once_stays_the_last_that_is_known(before: list[Event]) -> None:
    kept = seen(before, RunState.FAILED, "the job ended: no conda", 300.0)
    silent = told(SILENT, *before, kept)
    assert silent.state is RunState.FAILED
    known = "last known: failed: the job ended: no conda"
    assert silent.reason == f"Slurm does not answer; {known}"
    forgotten = told(FORGOTTEN, *before, kept)
    assert (forgotten.state, forgotten.reason) == (RunState.FAILED, "the job ended: no conda")
    # What Slurm says now outweighs it, and so does whatever has begun since.
    assert told(SchedulerView(RunState.RUNNING), *before, kept).state is RunState.RUNNING
    again = dataclasses.replace(SUBMITTED, data={"job_id": "8", "backend": "slurm"})
    for later in ([*before, kept, again], [*before, again, kept]):
        assert told(SILENT, *later).state is RunState.PENDING
    going = seen(before, RunState.RUNNING, "", 400.0)
    assert not told(SILENT, *before, kept, going).state.ended


FULL = "hpc-train: error: the run directory cannot be written: No space left on device (/x)"
MAKE_ROOM = "fix: make room there, and then hpc-train resume 20260101-000000-aaaa"
WORDS = ("line 1", "bash: /nope: No such file", "hpc-train: env.venv cannot be activated")


@pytest.mark.parametrize(
    ("view", "events", "reason"),
    [
        (
            SchedulerView(RunState.FAILED, "NonZeroExitCode", last_words=WORDS),
            [SUBMITTED],
            f"the job ended before its training began: {WORDS[1]}; {WORDS[2]}",
        ),
        (
            SchedulerView(None, last_words=WORDS[:1]),  # Slurm has forgotten the job
            [SUBMITTED],
            "the job ended before its training began: line 1",
        ),
        (
            SchedulerView(RunState.FAILED, "NodeFail", last_words=WORDS[2:]),
            [SUBMITTED, STARTED],
            f"the job ended without a word of its supervisor: {WORDS[2]}",
        ),
        (  # its supervisor itself has said what it could not write down
            SchedulerView(RunState.FAILED, "NonZeroExitCode", last_words=(FULL, MAKE_ROOM)),
            [SUBMITTED, STARTED],
            f"the job ended before its training was over: {FULL}; {MAKE_ROOM}",
        ),
        (
            SchedulerView(RunState.FAILED, "NonZeroExitCode"),
            [SUBMITTED],
            (
                "the job ended before its training began, and left no log (Slurm: NonZeroExitCode):"
                " where env has lines they run first, and one of env.setup may have ended it"
            ),
        ),
        (
            SchedulerView(RunState.FAILED),  # sacct keeps no reason of a job
            [SUBMITTED],
            (
                "the job ended before its training began, and left no log: where env has lines they"
                " run first, and one of env.setup may have ended it"
            ),
        ),
        (
            SchedulerView(RunState.FAILED, untrained=True, last_words=WORDS[:1]),
            [SUBMITTED],
            (
                "the job ended before its training began, with exit code 0: a line of env.setup"
                " ends its shell (exit, exec): line 1"
            ),
        ),
        (
            SchedulerView(RunState.FAILED, "JobLaunchFailure"),
            [SUBMITTED],
            (
                "the job ended before its training began: its node could not open the job's log in"
                " /runs/digits/one/submitit (Slurm: JobLaunchFailure): as a rule that folder is on"
                " a file system which the nodes do not see; submit again with runs_dir=FOLDER that"
                " they see"
            ),
        ),
        (
            SchedulerView(RunState.TIMED_OUT, "TimeLimit", last_words=WORDS),
            [SUBMITTED],
            "TimeLimit",
        ),
    ],
)
def test_a_run_that_left_no_end_is_told_by_the_end_of_its_jobs_log(
    view: SchedulerView, events: list[Event], reason: str
) -> None:
    status_now = told(view, *events)
    assert status_now.reason == reason
    state = status_now.state
    kept = list(view.last_words) if state in (RunState.FAILED, RunState.LOST) else []
    assert status_now.to_json()["last_words"] == kept
    lines = list(history_lines(status_now, 1000.0))
    said = [line for line in kept if line not in reason]
    assert [line.strip() for line in lines if line.strip() in WORDS] == said, "each once"
    assert any(line.startswith("  job log    /runs/digits/one/") for line in lines) == bool(kept)


def ending(outcome: str, reason: str, decision: str, state: str) -> list[Event]:
    end = {"attempt": 0, "outcome": outcome, "reason": reason}
    return [
        SUBMITTED,
        STARTED,
        Event(150.0, EventKind.ATTEMPT_ENDED, end),
        Event(151.0, EventKind.DECIDED, {"attempt": 0, "action": "stop", "reason": decision}),
        Event(152.0, EventKind.RUN_ENDED, {"attempt": 0, "state": state, "reason": decision}),
    ]


@pytest.mark.parametrize(
    ("outcome", "reason", "decision", "state", "head"),
    [
        ("user_error", "rank 0 failed: ValueError: x", None, "failed", None),
        ("cancelled", "`hpc-train cancel` asked for it", None, "cancelled", None),
        (
            "node_failure",
            "n1 no longer answers",
            "4 failures in a row",
            "failed",
            "n1 no longer answers (4 failures in a row)",
        ),
        ("completed", "all ranks finished", None, "completed", "the training is complete"),
        (
            "completed",
            "EarlyStopping ended it at step 28 of 210, epoch 2: val: worse",
            None,
            "completed",
            None,
        ),
    ],
)
def test_the_first_line_says_what_ended_the_run_and_nothing_says_it_twice(
    outcome: str, reason: str, decision: str | None, state: str, head: str | None
) -> None:
    usual = Outcome(outcome).follows.reason
    ended = status(*ending(outcome, reason, decision or usual, state))
    assert ended.reason == (head or reason)
    text = "\n".join(history_lines(ended, 1000.0))
    assert text.count(head or reason) == 1 + (head == usual)
    assert "comes back each time" not in text
    assert text.count(reason) == 1


def test_a_training_that_ended_early_says_why_in_the_table_and_decides_no_whole_one() -> None:
    early, usual = "EarlyStopping ended it at step 28 of 210", Outcome.COMPLETED.follows.reason
    ended = status(*ending("completed", early, usual, "completed"))
    assert COLUMNS["WHY"](ended) == early
    text = " ".join("\n".join(history_lines(ended, 1000.0)).split())
    assert "decided stop: it was ended before its last step" in text
    assert usual not in text
    whole = status(*ending("completed", ALL_FINISHED, usual, "completed"))
    assert COLUMNS["WHY"](whole) == ""
    assert f"decided stop: {usual}" in " ".join("\n".join(history_lines(whole, 1000.0)).split())


def test_a_bench_that_has_measured_its_steps_was_not_ended_early() -> None:
    measured = "all steps are measured"
    events = ending("completed", measured, measured, "completed")
    bench = dataclasses.replace(STARTED, data={**STARTED.data, "verb": "bench"})
    ended = status(events[0], bench, *events[2:])
    assert (ended.reason, COLUMNS["WHY"](ended)) == (measured, measured)
    lines = list(history_lines(ended, 1000.0))
    assert f"    decided  stop: {measured}" in lines
    assert not [line for line in lines if "before its last step" in line]


def test_an_attempts_reason_that_does_not_fit_into_the_first_line_is_told_whole_below_it() -> None:
    long = "rank 0 failed: " + "very long words " * 12 + "the end"
    ended = status(*ending("user_error", long, Outcome.USER_ERROR.follows.reason, "failed"))
    text = " ".join("\n".join(history_lines(ended, 1000.0)).split())
    assert "the end" in text


@pytest.mark.parametrize("ahead_s", [-290.0, 290.0])
def test_a_node_whose_clock_is_minutes_off_changes_no_state(ahead_s: float) -> None:
    def on_node(*events: Event) -> list[Event]:
        return [dataclasses.replace(event, time=event.time + ahead_s) for event in events]

    assert status(SUBMITTED, *on_node(STARTED, ENDED)).state is RunState.COMPLETED
    again = dataclasses.replace(SUBMITTED, time=ENDED.time + 100)
    resumed = status(SUBMITTED, *on_node(STARTED, ENDED), again, view=RunState.RUNNING)
    assert resumed.state is RunState.RUNNING
    cancelled = status(SUBMITTED, *on_node(STARTED, PREEMPTED, WENT_ON), CANCEL)
    assert cancelled.state is RunState.CANCELLED


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ([], "cancelled before it began"),
        ([STARTED], "cancelled; it was killed before its ranks had left"),
        ([STARTED, PREEMPTED, WENT_ON], "cancelled before attempt 1 began"),
    ],
)
def test_a_cancelled_run_without_an_end_says_how_far_it_was(
    before: list[Event], reason: str
) -> None:
    seen = status(SUBMITTED, *before, CANCEL)
    assert (seen.state, seen.reason) == (RunState.CANCELLED, reason)


@pytest.mark.parametrize("standing", ["", "Slurm is ending the job"])
@pytest.mark.parametrize("before", [[], [STARTED]])
def test_while_a_cancel_is_carried_out_it_is_told_with_what_is_waited_for(
    before: list[Event], standing: str
) -> None:
    view = SchedulerView(RunState.RUNNING, standing=standing)
    asked = time.strftime("%H:%M:%S", time.localtime(CANCEL.time))
    first = next(history_lines(told(view, SUBMITTED, *before, CANCEL, now=172.0), 172.0))
    assert f"cancel was asked for at {asked}; its ranks save and leave" in first
    assert "Slurm's KillWait" in first


def test_a_cancel_before_the_run_was_resumed_is_not_told_of_it() -> None:
    view = SchedulerView(RunState.RUNNING)
    again = dataclasses.replace(SUBMITTED, time=200.0, data={"job_id": "8", "backend": "slurm"})
    started = Event(201.0, EventKind.ATTEMPT_STARTED, {"attempt": 1, "job_id": "8"})
    assert told(view, SUBMITTED, STARTED, CANCEL, again, started, now=210.0).waiting == ""


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_job_that_was_cancelled_while_it_was_held_does_not_wait_any_more(is_asked: bool) -> None:
    trouble = "an administrator holds the job: ask them"
    view = SchedulerView(RunState.CANCELLED, "JobHeldAdmin", trouble=trouble)
    seen = told(view, SUBMITTED, *([CANCEL] if is_asked else []))
    since = "it had waited, since an administrator holds the job"
    assert (seen.reason, seen.trouble) == (f"cancelled before it began; {since}", "")
    assert "ask them" not in seen.stands


PLACES = (
    "the ranks wait for each other at different lines: rank 0 in step (/home/me/net.py:12); rank 1"
    " in step (/home/me/net.py:31); what all ranks have to call together (self.log with"
    " sync_dist=True, all_gather, a barrier) must not stand under an `if` that is true on some"
)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("is_over", [True, False])
def test_a_long_reason_that_comes_again_is_told_once(count: int, is_over: bool) -> None:
    events = [SUBMITTED]
    for number in range(count):
        known = {"attempt": number, "job_id": "7"}
        reason = f"nothing moved for {61 + number} s (limit 60 s); {PLACES}"
        events += [
            Event(200.0 + number, EventKind.ATTEMPT_STARTED, known),
            Event(
                200.5 + number,
                EventKind.ATTEMPT_ENDED,
                {**known, "outcome": "hang", "reason": reason},
            ),
        ]
    if is_over:
        events.append(Event(300.0, EventKind.RUN_ENDED, {"state": "failed", "reason": "twice"}))
    text = " ".join("\n".join(history_lines(status(*events), 1000.0)).split())
    assert text.count("what all ranks have to call together") == 1
    assert text.count("net.py:31") == 1
    for number in range(count):
        assert text.count(f"nothing moved for {61 + number} s (limit 60 s)") == 1
    assert text.count("; else as told above") == count - 1


def test_short_reasons_and_equal_ones_of_several_attempts_stand_with_each() -> None:
    ends = [
        Event(150.0, EventKind.ATTEMPT_ENDED, {**PREEMPTED.data, "attempt": number})
        for number in range(2)
    ]
    again = Event(200.0, EventKind.ATTEMPT_STARTED, {"attempt": 1, "job_id": "7"})
    text = "\n".join(history_lines(status(SUBMITTED, STARTED, ends[0], again, ends[1]), 1000.0))
    assert text.count("what     preempted by Slurm") == 2


def test_the_marks_below_a_line_of_a_traceback_are_no_words(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        "Traceback:\n  base = pathlib.Path()\n         ^^^^^^~~^^^^^\nAttributeError: x\n"
    )
    assert last_words(log) == ("Traceback:", "base = pathlib.Path()", "AttributeError: x")


def test_the_layers_that_took_no_weights_stand_behind_these() -> None:
    fields = {**STARTED.data, "weights": "/a/model.ckpt", "weights_left_out": ["head", "fc"]}
    begun = status(SUBMITTED, dataclasses.replace(STARTED, data=fields))
    lines = [*history_lines(begun, 1000.0)]
    assert "  weights    began with /a/model.ckpt, without head, fc (init_leave_out)" in lines
    assert begun.to_json()["attempts"][0]["weights_left_out"] == ("head", "fc")
