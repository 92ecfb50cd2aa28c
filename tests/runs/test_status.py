"""The state of a run, from its history and whatever Slurm still knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind
from hpc_train.runs.history_text import duration, history_lines, list_row
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus, SchedulerView, run_status

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


def status(*events: Event, view: RunState | None = None, now: float = 1000.0) -> RunStatus:
    return run_status(
        RunDir(Path("/runs/digits/one")),
        events,
        SchedulerView(view),
        step=0,
        metrics={"val_acc": 0.98765},
        now=now,
    )


@pytest.mark.parametrize(
    ("events", "view", "now", "state"),
    [
        ([SUBMITTED], None, 110.0, RunState.PENDING),  # not in squeue's list yet
        ([SUBMITTED], RunState.PENDING, 1000.0, RunState.PENDING),
        ([SUBMITTED], None, 1000.0, RunState.LOST),
        ([SUBMITTED, STARTED], RunState.RUNNING, 1000.0, RunState.RUNNING),
        # sacct's PREEMPTED of a job that was requeued is not the end of the run.
        ([SUBMITTED, STARTED, PREEMPTED, WENT_ON], RunState.FAILED, 170.0, RunState.PENDING),
        ([SUBMITTED, STARTED, PREEMPTED, WENT_ON], RunState.PENDING, 1000.0, RunState.PENDING),
        ([SUBMITTED, STARTED, CANCEL], None, 1000.0, RunState.CANCELLED),
        ([SUBMITTED, STARTED, ENDED], RunState.RUNNING, 1000.0, RunState.COMPLETED),
        ([SUBMITTED, STARTED], RunState.TIMED_OUT, 1000.0, RunState.TIMED_OUT),
        # Brought back after its end: the newest submission counts.
        ([SUBMITTED, ENDED, Event(900.0, EventKind.SUBMITTED, {"job_id": "8", "backend": "slurm"})],
         RunState.RUNNING, 1000.0, RunState.RUNNING),
    ],
)  # fmt: skip
def test_a_run_has_one_state(
    events: list[Event], view: RunState | None, now: float, state: RunState
) -> None:
    assert status(*events, view=view, now=now).state is state


def test_the_diary_reads_like_one() -> None:
    lines = "\n".join(
        history_lines(status(SUBMITTED, STARTED, PREEMPTED, DECIDED, WENT_ON), 1000.0)
    )
    assert "preempted after 40 s  job 7" in lines
    assert "steps    0 to 12, 0 lost" in lines
    assert "decided  requeue: goes on" in lines
    assert "val_acc 0.9877" in lines


def test_a_run_stands_where_its_newest_attempt_stands_and_not_where_an_earlier_one_came() -> None:
    again = Event(200.0, EventKind.ATTEMPT_STARTED, {"attempt": 1, "job_id": "7", "first_step": 12})
    began = Event(210.0, EventKind.RANKS_BEGAN, {"attempt": 1, "first_step": 0})
    assert status(SUBMITTED, STARTED, PREEMPTED).step == 12
    assert status(SUBMITTED, STARTED, PREEMPTED, again).step == 12
    assert status(SUBMITTED, STARTED, PREEMPTED, again, began).step == 0


@pytest.mark.parametrize("lines", [1, 3, 4, 64])
def test_the_history_has_three_lines_of_network_and_none_over_200_characters(lines: int) -> None:
    summary = "\n".join(f"fail: node{i} " + "x" * (20 if lines < 4 else 300) for i in range(lines))
    long = {"reason": "the preflight refused: " + "many words " * 100}
    events = [
        SUBMITTED,
        Event(110.0, EventKind.ATTEMPT_STARTED,
              {"attempt": 0, "job_id": "7", "nodes": [f"node{i:02}" for i in range(1, 65)]}),
        Event(111.0, EventKind.PREFLIGHT, {"attempt": 0, "summary": summary}),
        Event(112.0, EventKind.ATTEMPT_ENDED, {**PREEMPTED.data, **long}),
        Event(113.0, EventKind.DECIDED, {"attempt": 0, "action": "stop", **long}),
        Event(114.0, EventKind.RUN_ENDED, {"state": "failed", **long}),
    ]  # fmt: skip
    told = list(history_lines(status(*events), 1000.0))
    assert max(map(len, told)) <= 200
    assert "    nodes    node[01-64]" in told
    start, end = (
        next(i for i, line in enumerate(told) if line.startswith(f"    {word}"))
        for word in ("network", "what")
    )
    assert end - start == min(lines, 3)
    assert ("hpc-train preflight RUN --attempt 0" in told[end - 1]) == (lines > 3)


def test_nodes_of_one_machine_are_listed_as_they_stand() -> None:
    local = {"attempt": 0, "job_id": "7", "nodes": ["host/0", "host/1"]}
    told = history_lines(status(SUBMITTED, Event(110.0, EventKind.ATTEMPT_STARTED, local)), 1000.0)
    assert "    nodes    host/0, host/1" in told


def test_the_json_document_keeps_its_keys() -> None:
    document = status(SUBMITTED, STARTED, PREEMPTED, DECIDED).to_json()
    keys = {"schema_version", "run", "run_dir", "state", "outcome", "job_id", "attempts", "metrics"}
    assert keys <= document.keys()
    attempt = document["attempts"][0]
    wanted = {"attempt", "job_id", "nodes", "started", "ended", "outcome", "decision", "reason"}
    assert wanted | {"first_step", "last_step", "steps_lost", "excluded"} <= attempt.keys()


def test_a_list_row_has_a_cell_for_each_column() -> None:
    assert list_row(status(SUBMITTED, STARTED, ENDED))[2:4] == ("completed", "7")


def test_durations_are_short() -> None:
    assert [duration(s) for s in (0, 59.6, 185, 7800)] == [
        "0 s",
        "1 min 00 s",
        "3 min 05 s",
        "2 h 10 min",
    ]
