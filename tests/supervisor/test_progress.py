"""How far an attempt came, read from what its ranks left."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.layout import RunDir, checkpoint_name
from hpc_train.runs.ranks import Beginning, Damaged, Heartbeat, write_beginning, write_heartbeat
from hpc_train.supervisor.progress import attempt_steps, tell_beginning


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
    assert said == ["the ranks begin anew", *([line] if told else [])]


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
