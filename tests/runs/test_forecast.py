"""Whether a training ends before its job's limit, and how often it will be put back if not."""

from __future__ import annotations

import pytest

from hpc_train.config.schema import RequeueConfig
from hpc_train.runs.forecast import TimeLimit, forecast_end
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.ranks import Heartbeat

NOW = 100_000.0
HOUR_S = 3600.0


def attempts(number: int = 1, started: float = NOW - HOUR_S) -> list[AttemptRecord]:
    return [AttemptRecord(attempt=k, job_id="7", started=started) for k in range(number)]


def beat(left_s: float, **told: object) -> Heartbeat:
    """Of a training that has so many seconds before it."""
    at = {"time": NOW, "moved": NOW, "phase": "train", "step": 100, "steps_per_s": 2.0}
    steps = 100 + round(2 * left_s)
    return Heartbeat(**{"rank": 0, "node": "n", "pid": 1, **at, "steps": steps, **told})


def limit(in_s: float, length_s: float = 10 * HOUR_S, lead_s: float = 0.0, **policy: object):
    return TimeLimit(NOW + in_s, length_s, lead_s, RequeueConfig(**policy))


@pytest.mark.parametrize(
    ("left_h", "limit_h", "requeues", "words"),
    [
        (1, 2, 0, ""),
        (2, 2, 0, ""),
        (2.01, 2, 1, "won't finish before its limit: will be requeued once"),
        (12, 2, 1, "won't finish before its limit: will be requeued once"),
        (12.01, 2, 2, "won't finish before its limit: will be requeued twice"),
        (22.01, 2, 3, "won't finish before its limit: will be requeued 3 times"),
        (5, 0, 1, "won't finish before its limit: will be requeued once"),
        (5, -1, 1, "won't finish before its limit: will be requeued once"),  # being stopped
    ],
)
def test_what_is_left_is_held_against_this_job_and_the_next_ones(left_h, limit_h, requeues, words):
    found = forecast_end(beat(left_h * HOUR_S), attempts(), limit(limit_h * HOUR_S), NOW)
    assert (found.requeues, found.warning) == (requeues, words)
    assert found.limit_in_s == max(0, limit_h) * HOUR_S


def test_the_time_before_the_limit_in_which_the_ranks_save_is_no_training():
    just = forecast_end(beat(2 * HOUR_S - 121), attempts(), limit(2 * HOUR_S, lead_s=120), NOW)
    late = forecast_end(beat(2 * HOUR_S - 119), attempts(), limit(2 * HOUR_S, lead_s=120), NOW)
    assert (just.requeues, late.requeues) == (0, 1)


def test_what_this_attempt_needed_before_its_first_step_the_next_ones_need_as_well():
    # An hour since its start, of which it trained 20 minutes.
    seconds = {"start": 900.0, "train": 1000.0, "save": 200.0}
    trained = beat(12 * HOUR_S, seconds=seconds)
    found = forecast_end(trained, attempts(), limit(2 * HOUR_S, length_s=2 * HOUR_S), NOW)
    assert found.requeues == 8  # 10 hours missing, 80 minutes a job
    unknown = forecast_end(beat(12 * HOUR_S), attempts(), limit(2 * HOUR_S, 2 * HOUR_S), NOW)
    assert unknown.requeues == 5


def test_a_start_as_long_as_a_job_is_told_and_not_divided_by():
    slow = beat(12 * HOUR_S, seconds={"start": 3590.0, "train": 0.0})
    found = forecast_end(slow, attempts(), limit(600, length_s=HOUR_S), NOW)
    assert found.requeues is None
    assert "a start takes as long as a job: raise slurm.time" in found.warning


@pytest.mark.parametrize(
    ("policy", "so_far", "words"),
    [
        ({"enabled": False}, 1, "and requeue.enabled is false"),
        ({"max_attempts": 2}, 1, "and requeue.max_attempts (2) does not suffice"),
        ({"max_attempts": 3}, 1, ": will be requeued twice"),
        ({"max_attempts": 3}, 2, "and requeue.max_attempts (3) does not suffice"),
        ({}, 50, ": will be requeued twice"),
    ],
)
def test_a_run_that_may_not_go_on_is_told_so(policy, so_far, words):
    found = forecast_end(beat(22 * HOUR_S), attempts(so_far), limit(2 * HOUR_S, **policy), NOW)
    assert found.warning.startswith("won't finish before its limit")
    assert words in found.warning


@pytest.mark.parametrize("told", [{"steps": None}, {"steps_per_s": None}, {"steps_per_s": 0.0}])
def test_without_an_end_or_a_pace_nothing_is_forecast_but_the_limit(told):
    found = forecast_end(beat(HOUR_S, **told), attempts(), limit(60), NOW)
    assert (found.limit_in_s, found.requeues, found.warning) == (60.0, None, "")


def test_before_its_first_sign_of_life_only_the_limit_is_known():
    assert forecast_end(None, [], limit(60), NOW).requeues is None


def test_time_that_has_passed_since_the_sign_of_life_was_trained():
    old = beat(HOUR_S, time=NOW - 1800)
    assert forecast_end(old, attempts(), limit(1900), NOW).requeues == 0
