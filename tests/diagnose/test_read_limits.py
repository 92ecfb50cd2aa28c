"""A job's limit, as the history tells it with what was decided."""

from __future__ import annotations

from hpc_train.runs.events import Event, EventKind, append_event
from tests.diagnose.test_read_run import ended, first, made
from tests.report.made import BEGAN

__all__ = ["made"]


def test_a_limit_that_ended_the_run_says_that_it_is_not_queued_again(made):
    reason = "the job's time limit came near; saved at step 9"
    ended(made, "timeout", reason)
    assert first(made).name == "time_limit"
    data = {"state": "timed_out", "reason": "requeue.enabled is false"}
    append_event(made.run.events, Event(BEGAN + 101, EventKind.RUN_ENDED, data))
    found = first(made)
    assert found.name == "no_requeue"
    assert found.cause == (
        f"the job reached its time limit: {reason}, and requeue.enabled is false"
    )
    assert f"hpc-train resume {made.run.run_id} goes on, with --time" in found.fix
