"""Attempts put together from the history: where they began, what they kept, what was lost."""

from __future__ import annotations

import pytest

from hpc_train.runs.events import Event, EventKind
from hpc_train.runs.history import (
    AttemptRecord,
    attempts_in,
    newest_job_id,
    since_submission,
    summaries,
)


def attempt(number: int, first: int, last: int, saved: int, *, assumed: int = 0) -> list[Event]:
    """The events of an attempt that began at `first`; nobody came to say so where it is -1."""
    where = {"attempt": number}
    events = [(EventKind.ATTEMPT_STARTED, {"job_id": "7", "first_step": assumed})]
    if first >= 0:
        events.append((EventKind.RANKS_BEGAN, {"first_step": first}))
    steps = {"first_step": first if first >= 0 else assumed, "last_step": last, "saved_step": saved}
    events.append((EventKind.ATTEMPT_ENDED, {"outcome": "preempted", **steps}))
    return [Event(number + n / 9, kind, {**where, **data}) for n, (kind, data) in enumerate(events)]


def lost(*attempts: list[Event]) -> list[int]:
    events = [event for events in attempts for event in events]
    return [record.steps_lost for record in attempts_in(events)]


@pytest.mark.parametrize(
    ("attempts", "steps_lost"),
    [
        ([(0, 39, 39), (39, 60, 60)], [0, 0]),  # nothing is damaged
        ([(0, 39, 39), (0, 22, 22)], [39, 0]),  # the newest and only one
        ([(0, 39, 39), (0, 22, 22), (22, 30, 25)], [39, 0, 5]),
        ([(0, 235, 235), (235, 302, 285), (235, 240, 240)], [0, 67, 0]),  # the newest of several
        ([(0, 100, 100), (100, 200, 200), (200, 310, 300), (50, 60, 60)], [50, 100, 110, 0]),
        ([(0, 10, 10), (0, 10, 10), (0, 10, 10)], [10, 10, 0]),  # again and again
    ],
)
def test_steps_that_a_damaged_checkpoint_costs_are_lost_to_the_attempts_that_took_them(
    attempts: list[tuple[int, int, int]], steps_lost: list[int]
) -> None:
    told = [attempt(number, *steps) for number, steps in enumerate(attempts)]
    assert lost(*told) == steps_lost
    taken = sum(last - first for first, last, _ in attempts)
    kept = taken - sum(steps_lost)
    assert kept == attempts[-1][2], "what is kept is where the run stands"


def test_an_attempt_whose_ranks_never_began_takes_nothing_from_the_others() -> None:
    refused = attempt(1, -1, 39, 39, assumed=39)
    assert lost(attempt(0, 0, 39, 39), refused, attempt(2, 0, 5, 5)) == [39, 0, 0]
    assert lost(attempt(0, 0, 39, 39), refused, attempt(2, 39, 45, 45)) == [0, 0, 0]


def test_a_checkpoint_that_is_named_later_keeps_the_steps_of_the_attempt_before() -> None:
    assert lost(attempt(0, 0, 48, 0), attempt(1, 48, 60, 60)) == [0, 0]
    assert lost(attempt(0, 0, 48, 0), attempt(1, 40, 60, 60)) == [8, 0]
    began_anew = attempt(1, 0, 30, 0)
    assert lost(attempt(0, 0, 48, 0), began_anew, attempt(2, 30, 60, 60)) == [48, 0, 0]


def test_where_the_ranks_began_replaces_what_was_assumed_while_they_train() -> None:
    started = Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 1, "job_id": "7", "first_step": 39})
    damage = {"attempt": 1, "step": 39, "reason": "model.ckpt missing", "first_step": 20}
    damaged = Event(2.0, EventKind.CHECKPOINT_DAMAGED, damage)
    began = Event(2.0, EventKind.RANKS_BEGAN, {"attempt": 1, "first_step": 20})
    (before,) = attempts_in([started])
    (after,) = attempts_in([started, damaged, began])
    assert (before.first_step, before.damaged) == (39, ())
    assert (after.first_step, after.saved_step) == (20, 20)
    assert [(item.step, item.reason) for item in after.damaged] == [(39, "model.ckpt missing")]


def test_a_history_of_the_version_before_is_read_as_it_was_meant() -> None:
    start = {"attempt": 0, "job_id": "7", "first_step": 12}
    end = {"attempt": 0, "outcome": "preempted", "last_step": 20, "saved_step": 18}
    (record,) = attempts_in(
        [Event(1.0, EventKind.ATTEMPT_STARTED, start), Event(2.0, EventKind.ATTEMPT_ENDED, end)]
    )
    assert isinstance(record, AttemptRecord)
    assert (record.first_step, record.last_step, record.steps_lost) == (12, 20, 2)


def started(number: int, time: float) -> Event:
    data = {"attempt": number, "job_id": "7", "nodes": ["a", "b"]}
    return Event(time, EventKind.ATTEMPT_STARTED, data)


def submitted(time: float) -> Event:
    return Event(time, EventKind.SUBMITTED, {"job_id": "7"})


@pytest.mark.parametrize(
    ("events", "counted"),
    [
        ([started(0, 1.0), started(1, 2.0)], [0, 1]),  # a rendered script: nobody submitted it
        ([submitted(0.0), started(0, 1.0), started(1, 2.0)], [0, 1]),
        ([submitted(0.0), started(0, 1.0), submitted(2.0), started(1, 2.0)], [1]),  # resumed
        (
            [submitted(0.0), started(0, 1.0), submitted(1.5), started(1, 2.0), started(2, 3.0)],
            [1, 2],
        ),
        ([submitted(0.0), started(0, 1.0), submitted(2.0)], []),
        # The node's clock is behind that of who submits, or ahead of it.
        ([submitted(300.0), started(0, 1.0), started(1, 2.0)], [0, 1]),
        ([submitted(0.0), started(0, 301.0), submitted(3.0), started(1, 304.0)], [1]),
    ],
)
def test_budgets_count_from_the_last_submission_by_a_person(
    events: list[Event], counted: list[int]
) -> None:
    assert [record.attempt for record in since_submission(events)] == counted


def test_the_nodes_of_an_attempt_are_those_that_its_ranks_started_on() -> None:
    ranks = Event(2.0, EventKind.RANKS_STARTED, {"attempt": 0, "nodes": ["b"]})
    (with_spare,) = attempts_in([started(0, 1.0)])
    (without,) = attempts_in([started(0, 1.0), ranks])
    assert (with_spare.nodes, without.nodes) == (("a", "b"), ("b",))


def test_an_attempt_of_which_nothing_else_is_known_stands_at_the_beginning() -> None:
    start = Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 0})
    (record,) = attempts_in([start])
    assert (record.job_id, record.nodes, record.host, record.pid) == ("", (), "", 0)
    assert (record.first_step, record.last_step, record.saved_step, record.kept_step) == (
        0,
        0,
        0,
        0,
    )
    end = Event(2.0, EventKind.ATTEMPT_ENDED, {"attempt": 0, "outcome": "hang"})
    damage = Event(1.5, EventKind.CHECKPOINT_DAMAGED, {"attempt": 0})
    (record,) = attempts_in([start, Event(1.2, EventKind.RANKS_BEGAN, {"attempt": 0}), damage, end])
    assert (record.first_step, record.last_step, record.steps_lost) == (0, 0, 0)
    assert [(item.step, item.reason) for item in record.damaged] == [(0, "")]
    (summary,) = summaries([record])
    assert (summary.first_step, summary.saved_step, summary.ended) == (0, 0, 2.0)


def test_no_step_is_lost_while_an_attempt_runs_nor_where_all_was_saved() -> None:
    (running,) = attempts_in([started(0, 1.0)])
    assert running.steps_lost == 0
    assert lost(attempt(0, 0, 39, 39)) == [0]
    assert lost(attempt(0, 0, 39, 38)) == [1]
    assert lost(attempt(0, 0, 38, 39)) == [0]  # saved, and its heartbeat was older


def test_only_attempts_that_have_ended_count_for_what_follows() -> None:
    records = attempts_in([*attempt(0, 0, 5, 5), started(1, 3.0)])
    assert [summary.attempt for summary in summaries(records)] == [0]


def test_a_run_that_was_never_submitted_has_no_job() -> None:
    assert newest_job_id([]) == ""
    assert newest_job_id([Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 0})]) == ""
    elsewhere = Event(2.0, EventKind.WENT_ON, {"attempt": 0, "job_id": 8})
    assert newest_job_id([started(0, 1.0), elsewhere]) == "8"


def test_a_record_of_which_only_the_start_is_known_counts_nothing() -> None:
    record = AttemptRecord(attempt=0, job_id="7", started=1.0)
    assert (record.pid, record.first_step, record.last_step) == (0, 0, 0)
    assert (record.saved_step, record.kept_step, record.steps_lost) == (0, 0, 0)
