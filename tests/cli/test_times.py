"""A time that is hardly any, at the submission and behind a run that its limit has ended."""

from __future__ import annotations

import time

import pytest

from hpc_train import api
from hpc_train.cli.following import follow_run
from hpc_train.runs.events import Event, EventKind, append_event
from tests.cli.conftest import DIGITS
from tests.cli.test_mistakes_of_first_days import end, project
from tests.cli.test_what_to_type_next import go_on, submit

__all__ = ["project", "submit"]


@pytest.mark.parametrize(
    ("time", "unit"),
    [
        ("1", 'slurm.time "1" is 1 min to Slurm; hours: "1:00:00"'),
        ("2:00", 'slurm.time "2:00" is 2 min to Slurm (M:S); hours are written "2:00:00"'),
    ],
)
def test_a_time_without_its_unit_that_is_hardly_any_says_both(hpc, taken, time, unit) -> None:
    """Who had meant the minutes was not told that no step may be taken in them."""
    said = hpc("submit", DIGITS, "--dry-run", "--time", time)
    first, second = (it for it in said.err.splitlines() if it.startswith("note: "))
    assert first == f"note: {unit}"
    assert "leaves a job 0 s or little more" in second
    assert second.endswith('Write a longer one ("0:10:00") or a smaller lead')


def test_the_longer_time_that_is_named_is_long_enough_for_the_lead(hpc, taken) -> None:
    words = ["--time", "0:01:30", "slurm.signal_lead_s=1200"]
    said = hpc("submit", DIGITS, "--dry-run", *words)
    assert 'Write a longer one ("0:10:00")' in said.err
    said = hpc("submit", DIGITS, "--dry-run", "--time", "0:10:00", words[-1])
    assert "Write a longer one" not in said.err


@pytest.mark.parametrize(
    ("time_", "longer"),
    [
        ("1", "0:10:00: so that it has time to train"),  # two minutes would be noted as too short
        ("2", "0:04:00"),
        ("2:30:00", "5:00:00"),
        ("1-12", "3-00:00:00"),
        ("UNLIMITED", ""),
        ("", "0:40:00"),
    ],
)
def test_a_run_that_its_limit_has_ended_is_gone_on_with_for_longer(
    submit, capfd, time_: str, longer: str
) -> None:
    """With the same limit it ends there again."""
    run = submit("my cfg.yaml", *(["--time", time_] if time_ else []))
    reason = "the job's time limit came near; saved at step 9"
    data = {"attempt": 0, "outcome": "timeout", "reason": reason, "last_step": 9}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    end(run, "timed_out", "requeue.enabled is false")
    what = "" if ": " in longer else ": twice as long as it had"
    with_time = f" --time {longer}{what}" if longer else ""
    assert go_on(capfd, run, 11) == f"hpc-train resume {run.run_id}{with_time}"


def test_how_a_run_without_requeue_goes_on_is_said_in_one_line(submit, capfd) -> None:
    run = submit("my cfg.yaml", "--time", "2:30:00", "requeue.enabled=false")
    reason = "the job's time limit came near; saved at step 9"
    data = {"attempt": 0, "outcome": "timeout", "reason": reason, "last_step": 9}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    end(run, "timed_out", "requeue.enabled is false")
    assert follow_run(api.Run(run), show=False) == 11
    lines = capfd.readouterr().out.splitlines()
    typed = f"hpc-train resume {run.run_id} --time 5:00:00: twice as long as it had"
    by_itself = "with requeue.enabled=true behind it the run goes on by itself"
    assert [it for it in lines if it.startswith(("fix", "go on"))] == [
        f"go on      {typed}; {by_itself}"
    ]


def test_a_run_whose_limit_somebody_has_shortened_is_gone_on_with_what_was_asked_for(
    submit, capfd
) -> None:
    """Twice of it would be more than it had ever wanted."""
    run = submit("my cfg.yaml", "--time", "20:00")
    reason = (
        "the job's limit was changed to 0:01:00, and 0:20:00 was asked for (x); saved at step 9"
    )
    data = {"attempt": 0, "outcome": "timeout", "reason": reason, "last_step": 9}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    end(run, "timed_out", "requeue.enabled is false")
    same = f"hpc-train resume {run.run_id} --time 0:20:00: as was asked for"
    assert go_on(capfd, run, 11) == same
