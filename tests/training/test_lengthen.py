"""A training that was complete and is made longer, against one that was as long from the start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.ledger import compare
from tests.training.ranks import Run
from tests.training.test_exactly_once import assert_same

KINDS: dict[str, dict[str, Any]] = {
    "map-style, moving average, models": {"models": [{"monitor": "val_loss"}], "ema": True},
    "data workers and accumulation": {"workers": 2, "accumulate": 2},
    "stream": {"data": "stream", "samples": 72},
    "stream in two persistent workers": {
        "data": "sized_stream",
        "workers": 2,
        "persistent": True,
        "samples": 108,
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_more_epochs_are_those_of_a_training_that_had_them_from_the_start(
    kind: str, tmp_path: Path
) -> None:
    spec = KINDS[kind]
    straight = Run(tmp_path / "a", epochs=4, **spec)
    assert straight.run(2) == [0, 0]
    longer = Run(tmp_path / "b", epochs=2, **spec)
    assert longer.run(2) == [0, 0]
    end = int(longer.checkpoints[-1].removeprefix("step-"))
    assert longer.run(2, epochs=4, reopened_step=end) == [0, 0], longer.log(1, 0)
    assert_same(straight, longer)


def test_more_steps_go_on_in_the_middle_of_the_epoch(tmp_path: Path) -> None:
    straight = Run(tmp_path / "a", epochs=-1, trainer={"max_steps": 16})
    assert straight.run(2) == [0, 0]
    longer = Run(tmp_path / "b", epochs=-1, trainer={"max_steps": 9})
    assert longer.run(2) == [0, 0]
    again = {"trainer": {"max_steps": 16}, "reopened_step": 9}
    assert longer.run(2, faults="kill@step=12:rank=1:attempt=1", **again)[1] == -9
    assert longer.run(2, **again) == [0, 0], longer.log(2, 0)
    comparison = compare(straight.ledger, longer.ledger)
    assert comparison.problems == []
    assert comparison.retaken == 3, "behind the kill, from the end of the shorter training"
    expected, got = (torch.load(run.path / "final.pt") for run in (straight, longer))
    assert all(torch.equal(expected[name], got[name]) for name in expected)


def test_early_stopping_stops_a_longer_training_again_and_other_ranks_can_go_on(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, epochs=9, early_stopping=True)
    assert run.run(2) == [0, 0]
    end = int(run.checkpoints[-1].removeprefix("step-"))
    assert end < 9 * 6
    assert run.run(1, epochs=12, reopened_step=end) == [0], run.log(1, 0)
    assert {entry.step for entry in run.ledger if entry.attempt} == set(range(end + 1, end + 7))


def test_a_complete_training_that_is_not_made_longer_stays_complete(tmp_path: Path) -> None:
    run = Run(tmp_path, epochs=1)
    assert run.run(1) == [0]
    assert run.run(1) == [0]
    assert {entry.attempt for entry in run.ledger} == {0}


def test_the_schedules_are_noted_with_the_length_they_were_built_for(tmp_path: Path) -> None:
    run = Run(tmp_path, epochs=1, estimate=True)
    assert run.run(1) == [0]
    told: list[dict[str, Any]] = json.loads(run.dir.schedules.read_text())
    assert told[0] == {"name": "CosineAnnealingLR", "length": 6, "interval": "step"}
    assert told[1]["length"] is None
