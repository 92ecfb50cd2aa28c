"""What follows an attempt, and who hears of it. The ranks and the preflight are made up here."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hpc_train.errors import HpcTrainError
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import Action, Follows, Outcome, RunState
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.supervisor import attempt_ended, run
from hpc_train.supervisor.attempt import Attempt, AttemptResult
from hpc_train.supervisor.attempt_ended import AttemptEnded
from hpc_train.supervisor.evidence import AttemptEvidence
from hpc_train.supervisor.outcome import JUDGES, AttemptOutcome, may_say
from hpc_train.supervisor.progress import attempt_steps, record_end
from hpc_train.supervisor.stopcause import StopCause
from tests.plan.configs import config

ENDS = [
    AttemptOutcome(outcome=Outcome.HANG, reason="nothing moved"),
    AttemptOutcome(outcome=Outcome.COMPLETED, reason="all ranks finished"),
]


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A run whose attempts end as `ENDS` says."""
    directory = RunDir(tmp_path / "run")
    directory.path.mkdir()
    directory.plan.write_text(
        make_plan(config(), workdir=tmp_path, python="python3").to_json(), encoding="utf-8"
    )
    ends = iter(ENDS)

    def made_up(attempt: Attempt) -> AttemptResult:
        ending = next(ends)
        steps = attempt_steps(attempt.run, attempt.number, assumed_first=0)
        record_end(attempt.run, attempt.number, ending, steps)
        return AttemptResult(ending, StopCause(None))

    monkeypatch.setattr(run, "_check_and_train", made_up)
    return directory


def test_a_listener_hears_each_attempts_end_once_though_another_one_fails(
    supervised: RunDir, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[AttemptEnded] = []

    def mail(_event: AttemptEnded, _say: object) -> None:
        raise ConnectionError("no route to the mail server")

    listeners = (mail, lambda event, _say: heard.append(event))
    monkeypatch.setattr(attempt_ended.tell_listeners, "__defaults__", (listeners,))
    assert run.supervise(supervised, {}, batch=False) == 0
    assert [(event.attempt.outcome, event.decision.action) for event in heard] == [
        (Outcome.HANG, Action.REQUEUE),
        (Outcome.COMPLETED, Action.STOP),
    ]
    assert [event.decision.state for event in heard] == [RunState.PENDING, RunState.COMPLETED]
    assert heard[0].run == supervised
    assert capsys.readouterr().out.count("mail failed: ConnectionError: no route") == 2


def test_the_log_says_what_follows(supervised: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    run.supervise(supervised, {}, batch=False)
    said = capsys.readouterr().out
    assert "decided: requeue: hang: goes on from step 0" in said
    assert "decided: stop: the training is complete" in said


def test_a_trial_of_a_few_batches_is_told_as_that_and_as_no_training(
    supervised: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config(trainer={"fast_dev_run": True})
    plan = make_plan(settings, workdir=supervised.path.parent, python="python3")
    supervised.plan.write_text(plan.to_json(), encoding="utf-8")
    run.supervise(supervised, {}, batch=False)
    said = capsys.readouterr().out
    assert "decided: requeue: hang: goes on from step 0" in said
    assert "decided: stop: a trial of 1 batch (trainer.fast_dev_run) is complete" in said


def test_an_outcome_without_a_word_on_what_follows_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="what follows 'melted'"):
        Outcome.__new_member__(Outcome, "melted")  # type: ignore[attr-defined]
    assert all(isinstance(outcome.follows, Follows) for outcome in Outcome)


def test_each_outcome_has_a_judge_and_no_judge_says_what_is_not_its_own() -> None:
    assert set().union(*JUDGES.values()) == set(Outcome)

    @may_say(Outcome.HANG)
    def wrong(_evidence: AttemptEvidence) -> AttemptOutcome:
        return AttemptOutcome(outcome=Outcome.COMPLETED, reason="")

    try:
        with pytest.raises(AssertionError, match="wrong must not say completed"):
            wrong(AttemptEvidence(world_size=1, launcher_code=0))
    finally:
        del JUDGES["wrong"]


def test_a_working_folder_that_is_gone_is_named_before_anything_starts(supervised: RunDir) -> None:
    plan = Plan.from_json(supervised.plan.read_text(encoding="utf-8"))
    moved = dataclasses.replace(plan, workdir="/no/such/folder")
    supervised.plan.write_text(moved.to_json(), encoding="utf-8")
    with pytest.raises(HpcTrainError, match="working folder /no/such/folder is not there") as told:
        run.supervise(supervised, {}, batch=False)
    back = f"bring it back where all nodes see it, and then hpc-train resume {supervised.path}"
    copied = "copy the project to a file system that all nodes see, and submit it there; or"
    assert told.value.hint == f"{copied} {back}"
    assert not supervised.events.exists()
    # A node has seen it before.
    began = Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 0, "job_id": "7"})
    append_event(supervised.events, began)
    with pytest.raises(HpcTrainError) as told:
        run.supervise(supervised, {}, batch=False)
    assert told.value.hint == back
