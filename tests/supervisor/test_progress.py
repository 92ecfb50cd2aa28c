"""How far an attempt came, read from what its ranks left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hpc_train.plan.states import Outcome
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir, checkpoint_name
from hpc_train.runs.ranks import (
    Beginning,
    Damaged,
    FailedSaves,
    Heartbeat,
    write_beginning,
    write_heartbeat,
)
from hpc_train.runs.saved_models import SavedModel, write_models
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.progress import AttemptSteps, attempt_steps, record_end, tell_beginning


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path)
    run.attempt(1).path.mkdir(parents=True)
    return run


def save(run: RunDir, step: int) -> None:
    folder = run.checkpoints / checkpoint_name(step)
    folder.mkdir(parents=True)
    (folder / "manifest.json").touch()


def beat(run: RunDir, rank: int, step: int) -> None:
    times = {"time": 1.0, "moved": 1.0, "pid": 1}
    write_heartbeat(
        run.attempt(1), Heartbeat(rank=rank, node="n", phase="train", step=step, **times)
    )


def test_an_attempt_begins_where_its_ranks_say_and_not_at_the_newest_folder(run: RunDir) -> None:
    write_beginning(run.attempt(1), Beginning(0, (Damaged(39, "truncated"),)))
    save(run, 22)
    beat(run, 0, 22)
    beat(run, 1, 23)
    steps = attempt_steps(run, 1, assumed_first=39)
    assert (steps.first, steps.last, steps.saved, steps.newly_saved) == (0, 23, 22, 22)


def test_until_the_ranks_say_where_they_begin_the_newest_checkpoint_counts(run: RunDir) -> None:
    save(run, 39)
    steps = attempt_steps(run, 1, assumed_first=39)
    assert (steps.first, steps.last, steps.saved, steps.newly_saved) == (39, 39, 39, None)


def test_a_damaged_checkpoint_that_could_not_be_moved_is_not_what_was_saved(run: RunDir) -> None:
    save(run, 20)
    save(run, 39)
    write_beginning(run.attempt(1), Beginning(20, (Damaged(39, "damaged", moved_aside=False),)))
    assert attempt_steps(run, 1, assumed_first=39).newly_saved is None


def model(run: RunDir, step: int, age_s: float = 0.0) -> SavedModel:
    path = run.models / f"{step}.ckpt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("weights")
    os.utime(path, (time.time() - age_s,) * 2)
    return SavedModel(path=str(path), step=step, epoch=0)


def test_a_model_tells_of_a_step_of_which_a_full_disk_has_let_no_rank_tell(
    run: RunDir, tmp_path: Path
) -> None:
    """`steps 0 to 10, 0 lost` stood beside the best model, of step 18."""
    earlier = model(run, 30, age_s=60)  # of an attempt that was killed, and that came further
    write_beginning(run.attempt(1), Beginning(0))
    save(run, 10)
    beat(run, 0, 10)
    elsewhere = SavedModel(path="s3://models/40.ckpt", step=40, epoch=0)
    write_models(run, [earlier, model(run, 18), elsewhere])
    os.link(earlier.path, tmp_path / "held.ckpt")  # as `test` of the run holds its weights
    steps = attempt_steps(run, 1, assumed_first=0)
    assert (steps.last, steps.saved) == (18, 10)


def test_a_step_that_is_saved_again_counts_though_it_was_damaged_before(run: RunDir) -> None:
    save(run, 39)
    write_beginning(run.attempt(1), Beginning(0, (Damaged(39, "damaged"),)))
    assert attempt_steps(run, 1, assumed_first=39).newly_saved == 39


@pytest.mark.parametrize(
    ("own", "asked", "told"), [(1, 2, True), (2, 2, False), (3, 2, True), (None, 2, False)]
)
def test_a_script_that_starts_another_number_of_ranks_than_asked_for_is_told(
    run: RunDir, own: int | None, asked: int, told: bool
) -> None:
    said: list[str] = []
    tell_beginning(run, 0, Beginning(0, ranks=own), said.append, asked=asked)
    line = f"the script's own ranks: {own}, of {asked} that were asked for"
    assert said == ["the ranks begin", *([line] if told else [])]


@pytest.mark.parametrize(
    ("before", "said"),
    [(None, "the ranks begin"), (0, "the ranks begin"), (7, "the ranks begin anew")],
)
def test_ranks_begin_anew_only_where_others_took_steps_before(
    run: RunDir, before: int | None, said: str
) -> None:
    if before is not None:
        append_event(run.events, Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 0}))
        ending = AttemptOutcome(outcome=Outcome.USER_ERROR, reason="KeyError")
        record_end(run, 0, ending, AttemptSteps(first=0, last=before, saved=0))
    told: list[str] = []
    tell_beginning(run, 1, Beginning(0), told.append)
    assert told == [said]


def test_saves_that_had_failed_when_the_attempt_ended_stand_in_its_record(run: RunDir) -> None:
    append_event(run.events, Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    failed = FailedSaves(count=3, since_step=15, error="No space left on device")
    for rank, saves in ((0, failed), (1, None)):
        told = {"pid": 1, "time": 1.0, "moved": 1.0, "phase": "train", "failed_saves": saves}
        write_heartbeat(run.attempt(0), Heartbeat(rank=rank, node="n", step=21, **told))
    ending = AttemptOutcome(outcome=Outcome.CANCELLED, reason="by somebody")
    record_end(run, 0, ending, attempt_steps(run, 0, assumed_first=0))
    (record,) = attempts_in(read_events(run.events))
    assert record.failed_saves == "3 failed since step 15: No space left on device"


def test_each_damaged_checkpoint_is_an_event_of_its_own(run: RunDir) -> None:
    said: list[str] = []
    damaged = (Damaged(39, "model.ckpt missing"), Damaged(30, "manifest missing"))
    tell_beginning(run, 1, Beginning(20, damaged), said.append)
    events = read_events(run.events)
    assert [(event.kind, event.get("step")) for event in events] == [
        (EventKind.CHECKPOINT_DAMAGED, 39),
        (EventKind.CHECKPOINT_DAMAGED, 30),
        (EventKind.RANKS_BEGAN, None),
    ]
    assert {event.get("first_step") for event in events} == {20}
    assert said[0] == "step 39 is damaged (model.ckpt missing): goes on from 20"
