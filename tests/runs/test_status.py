"""The state of a run, from its history and whatever Slurm still knows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind
from hpc_train.runs.history_text import duration, history_html, history_lines, progress_text
from hpc_train.runs.ranks import FailedSaves, Heartbeat, read_heartbeat
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


def test_durations_are_short() -> None:
    assert [duration(s) for s in (0, 59.6, 185, 7800)] == [
        "0 s",
        "1 min 00 s",
        "3 min 05 s",
        "2 h 10 min",
    ]


def beating(**told: object) -> Heartbeat:
    always = {"rank": 0, "node": "n", "pid": 1, "time": 1.0, "moved": 1.0, "phase": "train"}
    return Heartbeat(**{**always, "step": 281, **told})


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (
            {
                "steps": 512,
                "epoch": 4,
                "epochs": 8,
                "steps_per_s": 16.2,
                "metrics": {"loss": 0.284},
            },
            "step 281/512  epoch 4/8  16 it/s  ETA 14 s  loss 0.284",
        ),
        ({}, "step 281"),
        ({"epoch": 4, "steps_per_s": 2.04}, "step 281  epoch 4  2.0 it/s"),
        ({"steps": 512, "steps_per_s": 0.25}, "step 281/512  4.0 s/it  ETA 15 min 24 s"),
        ({"steps": 512, "steps_per_s": 0.01}, "step 281/512  100 s/it  ETA 6 h 25 min"),
        ({"steps": 280, "steps_per_s": 1.0}, "step 281/280  1.0 it/s  ETA 0 s"),
        ({"steps": 512}, "step 281/512"),  # the first step
        ({"phase": "start", "step": 0, "steps": 512}, "starting"),
        ({"phase": "validate"}, "step 281  validating"),
        ({"phase": "save", "metrics": {"loss": float("nan")}}, "step 281  saving  loss nan"),
        ({"metrics": {"a": 1.0, "b": 1e-7}}, "step 281  a 1  b 1e-07"),
    ],
)
def test_where_a_training_stands_is_one_line_of_what_is_known(told: dict, text: str) -> None:
    assert progress_text(beating(**told)) == text


def test_a_running_run_begins_with_where_it_stands() -> None:
    told = status(SUBMITTED, STARTED, view=RunState.RUNNING, beat=beating(steps=512, epoch=4))
    assert next(history_lines(told, 1000.0)) == "digits  running  step 281/512  epoch 4"
    waiting = status(SUBMITTED, STARTED, view=RunState.RUNNING)
    assert next(history_lines(waiting, 1000.0)) == "digits  running  no rank has begun yet"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize(
    "name", ["net", "a-name-that-goes-on-until-it-fills-the-line-of-64-characters-too"]
)
def test_no_number_is_parted_from_its_name_at_the_end_of_a_terminals_line(
    name: str, width: int
) -> None:
    beat = beating(steps=512, epoch=4, steps_per_s=16.2, metrics={"train_loss": 0.0436, "acc": 0.5})
    told = status(SUBMITTED, STARTED, view=RunState.RUNNING, beat=beat)
    parts = ["step 281/512", "epoch 4", "16 it/s", "ETA 14 s", "train_loss 0.0436", "acc 0.5"]
    lines = list(history_lines(dataclasses.replace(told, name=name), 1000.0, width))
    first = lines[: lines.index("  run        one")]
    assert max(map(len, first)) <= width
    assert [word for line in first for word in line.strip().split("  ")][-6:] == parts
    assert "".join(first).replace("  ", "").startswith(f"{name}running")


def test_what_keeps_the_ranks_from_starting_is_told_while_none_has_begun() -> None:
    view = SchedulerView(RunState.RUNNING, waiting="srun waits (Requested nodes are busy)")
    status = told(view, SUBMITTED, STARTED)
    said = "digits  running  no rank has begun yet: srun waits (Requested nodes are busy)"
    assert next(history_lines(status, 1000.0)) == said
    assert status.to_json()["reason"] == view.waiting
    assert told(view, SUBMITTED, STARTED, ENDED).waiting == ""


def test_what_a_job_has_beyond_the_plan_is_told_of_its_attempt() -> None:
    unused = "1 of the job's 2 nodes; to use it plan with --nodes 2"
    started = Event(110.0, EventKind.ATTEMPT_STARTED, {**STARTED.data, "unused": unused})
    assert f"    not used {unused}" in history_lines(status(SUBMITTED, started), 1000.0)


def test_the_json_document_has_the_progress_of_a_running_run_alone() -> None:
    beat = beating(steps=512, steps_per_s=16.5, metrics={"loss": 0.28})
    running = status(SUBMITTED, STARTED, view=RunState.RUNNING, beat=beat).to_json()
    assert running["progress"] == {
        "phase": "train", "step": 281, "steps": 512, "epoch": None, "epochs": None,
        "steps_per_s": 16.5, "eta_s": 14.0, "metrics": {"loss": 0.28},
    }  # fmt: skip
    assert running["step"] == 281
    for events in ([SUBMITTED], [SUBMITTED, STARTED, PREEMPTED, WENT_ON]):
        assert status(*events, view=RunState.PENDING, beat=beat).to_json()["progress"] is None
    assert status(SUBMITTED, STARTED, ENDED, beat=beat).to_json()["progress"] is None


def test_a_heartbeat_of_the_version_before_is_read_as_what_it_tells(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.json"
    path.write_text(
        '{"rank": 0, "node": "n", "pid": 1, "time": 1, "moved": 1, "phase": "train", "step": 3}'
    )
    assert progress_text(read_heartbeat(path)) == "step 3"


def test_a_note_stands_with_its_attempt() -> None:
    note = Event(111.0, EventKind.NOTE, {"attempt": 0, "text": "env.setup.0 (`x`) exited with 1"})
    noted = status(SUBMITTED, STARTED, note, view=RunState.RUNNING)
    assert "    note     env.setup.0 (`x`) exited with 1" in history_lines(noted, 1000.0)
    assert noted.to_json()["attempts"][0]["notes"] == ("env.setup.0 (`x`) exited with 1",)


def test_saves_that_fail_are_told_until_one_comes_about() -> None:
    said = "3 failed since step 15: No space left on device"
    failed = FailedSaves(count=3, since_step=15, error="No space left on device")
    fails = status(SUBMITTED, STARTED, view=RunState.RUNNING, beat=beating(failed_saves=failed))
    assert f"  saves      {said}" in history_lines(fails, 1000.0)
    assert fails.to_json()["failed_saves"] == said
    well = status(SUBMITTED, STARTED, view=RunState.RUNNING, beat=beating())
    assert not [line for line in history_lines(well, 1000.0) if "saves" in line]
    assert well.to_json()["failed_saves"] is None


def test_saves_that_had_failed_at_an_attempts_end_stay_with_it() -> None:
    said = "1 failed since step 12: No space left on device"
    ended = Event(150.0, EventKind.ATTEMPT_ENDED, {**PREEMPTED.data, "failed_saves": said})
    waits = status(SUBMITTED, STARTED, ended, WENT_ON, view=RunState.PENDING)
    assert [line for line in history_lines(waits, 1000.0) if said in line] == [
        f"  saves      {said}"
    ]
    again = Event(200.0, EventKind.ATTEMPT_STARTED, {"attempt": 1, "job_id": "7"})
    runs = status(SUBMITTED, STARTED, ended, WENT_ON, again, view=RunState.RUNNING, beat=beating())
    assert [line for line in history_lines(runs, 1000.0) if said in line] == [
        f"    saves    {said}"
    ]


def test_a_notebook_shows_the_state_and_no_markup_of_a_name() -> None:
    failed = Event(170.0, EventKind.RUN_ENDED, {"state": "failed", "reason": "<b>no</b>"})
    html = history_html(status(SUBMITTED, STARTED, failed), 1000.0)
    assert '<span style="color:red">failed</span>' in html
    assert "&lt;b&gt;no" in html
    assert html.count("<b>") == 1
