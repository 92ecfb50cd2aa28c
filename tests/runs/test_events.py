"""The history survives torn writers and concurrent ones."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in, newest_job_id, since_submission


def test_a_torn_last_line_is_passed_over_and_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append_event(path, Event(1.0, EventKind.NOTE, {"text": "first"}))
    with path.open("a") as stream:
        stream.write('{"time": 2.0, "event": "no')
    append_event(path, Event(3.0, EventKind.NOTE, {"text": "third"}))
    assert [event.get("text") for event in read_events(path)] == ["first", "third"]


def test_many_writers_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    note = Event(1.0, EventKind.NOTE, {"text": "x" * 5000})
    writers = [threading.Thread(target=append_event, args=(path, note)) for _ in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read_events(path)) == 20


def test_a_missing_diary_is_an_empty_one(tmp_path: Path) -> None:
    assert read_events(tmp_path / "events.jsonl") == []


def test_the_attempts_of_a_run_are_put_together_from_its_diary() -> None:
    events = [
        Event(1.0, EventKind.SUBMITTED, {"job_id": "7", "backend": "slurm"}),
        Event(2.0, EventKind.ATTEMPT_STARTED, {"attempt": 0, "job_id": "7", "nodes": ["a"]}),
        Event(
            9.0,
            EventKind.ATTEMPT_ENDED,
            {"attempt": 0, "outcome": "preempted", "last_step": 12, "saved_step": 10},
        ),
        Event(9.1, EventKind.DECIDED, {"attempt": 0, "action": "resubmit", "exclude": ["a"]}),
        Event(9.2, EventKind.WENT_ON, {"attempt": 0, "action": "resubmit", "job_id": "8"}),
    ]
    (attempt,) = attempts_in(events)
    assert attempt.steps_lost == 2
    assert attempt.excluded == ("a",)
    assert newest_job_id(events) == "8"
    again = [*events, Event(20.0, EventKind.SUBMITTED, {"job_id": "9"})]
    assert since_submission(again) == []


def test_a_job_that_begins_before_its_submission_is_written_down_comes_after_it(
    tmp_path: Path,
) -> None:
    path, began = tmp_path / "events.jsonl", EventKind.ATTEMPT_STARTED
    for job_id in ("7", "8", "7"):  # the last one is another job of the same number
        if job_id == "8":
            append_event(path, Event(2.0, began, {"attempt": 1, "job_id": "8"}))
        append_event(path, Event(1.0, EventKind.SUBMITTED, {"job_id": job_id}))
        if job_id == "7":
            append_event(path, Event(2.0, began, {"attempt": 0, "job_id": "7"}))
    events = read_events(path)
    assert [event.get("job_id") for event in events] == ["7", "7", "8", "8", "7", "7"]
    assert [event.kind for event in events] == [EventKind.SUBMITTED, began] * 3


@pytest.mark.parametrize(
    "damaged",
    [
        '{"time": 2, "event": "attempt_started", "att\ufffdmpt": 1}',
        '{"time": 2, "event": "attempt_started", "attempt": "one"}',
        '{"time": 2, "event": "attempt_ended", "attempt": 0, "outcome": "c0mpleted"}',
        '{"time": 2, "event": "attempt_ended", "attempt": 0}',
        '{"time": 2, "event": "attempt_ended", "attempt": 0, "outcome": "hang", "last_step": null}',
        '{"time": 2, "event": "run_ended", "state": 7}',
        '{"time": "x", "event": "note"}',
        '{"time": 2, "event": "of a newer version"}',
        "[]",
    ],
)
def test_a_damaged_line_is_passed_over_and_the_others_are_read(
    tmp_path: Path, damaged: str
) -> None:
    path = tmp_path / "events.jsonl"
    append_event(path, Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 0, "job_id": "7"}))
    path.write_text(path.read_text() + damaged + "\n")
    append_event(path, Event(3.0, EventKind.NOTE, {"text": "last"}))
    events = read_events(path)
    assert [event.time for event in events] == [1.0, 3.0]
    assert [record.outcome for record in attempts_in(events)] == [None]
