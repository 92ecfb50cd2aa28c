"""Ranks killed once the last step is saved, while callbacks do what comes at the end."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.ledger import compare
from tests.training.ranks import Run

SPECS: list[dict[str, Any]] = [
    {},
    {"ema": True},
    {"ema": True, "data": "stream", "samples": 72},
    {"early_stopping": True, "epochs": 9},
    {"trainer": {"max_steps": 10}, "epochs": -1},
    {"models": [{"monitor": "val_loss", "save_last": True, "save_top_k": 2}]},
    {"accumulate": 2, "workers": 2},
]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    return bool(one == other or (math.isnan(one) and math.isnan(other)))


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("world_size", [1, 2])
def test_what_callbacks_do_at_the_end_is_done_in_the_next_attempt_with_the_same_weights(
    world_size: int, spec: dict[str, Any], tmp_path: Path
) -> None:
    quiet = Run(tmp_path / "quiet", exports="quiet", **spec)
    assert quiet.run(world_size) == [0] * world_size
    run = Run(tmp_path / "run", exports="killed", **spec)
    assert run.run(world_size) == [-9] * world_size
    assert not (run.path / "exported.pt").exists()
    assert run.run(world_size) == [0] * world_size, run.log(1, 0)
    assert "last None" in run.log(1, 0), "no step was left"
    for name in ("exported.pt", "final.pt"):
        expected, got = torch.load(quiet.path / name), torch.load(run.path / name)
        assert same(expected, got), name
    comparison = compare(quiet.ledger, run.ledger)
    assert (comparison.problems, comparison.retaken) == ([], 0)


def test_a_run_that_was_killed_there_and_goes_on_longer_does_not_begin_with_its_averages(
    tmp_path: Path,
) -> None:
    quiet = Run(tmp_path / "quiet", ema=True, epochs=3)
    assert quiet.run(2) == [0, 0]
    run = Run(tmp_path / "run", ema=True, exports="killed", epochs=2)
    assert run.run(2) == [-9, -9]
    assert run.run(2, exports="") == [0, 0]
    assert run.run(2, exports="", epochs=3, reopened_step=max(e.step for e in run.ledger)) == [0, 0]
    assert compare(quiet.ledger, run.ledger).problems == []
