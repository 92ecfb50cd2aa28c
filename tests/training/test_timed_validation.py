"""`val_check_interval` as a time, which Lightning takes since 2.6."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hpc_train.training.private import lightning_loops
from hpc_train.training.private.lightning import PACKAGE
from tests.ledger import compare
from tests.training.ranks import Run
from tests.training.told_steps import Hooks, StopError

SECOND: dict[str, Any] = {"trainer": {"val_check_interval": "00:00:00:01"}, "step_s": 0.1}


def validated(log: str) -> list[int]:
    return [int(it) for it in re.findall(r"validates at step (\d+)", log)]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_all_ranks_validate_behind_the_same_steps_though_one_comes_later(
    world_size: int, tmp_path: Path
) -> None:
    """Each asked its own clock: one validated while another took the next step."""
    run = Run(tmp_path / "run", late_s=0.5, **SECOND)
    assert run.run(world_size) == [0] * world_size, run.log(0, 0)
    steps = [validated(run.log(0, rank)) for rank in range(world_size)]
    assert steps == [steps[0]] * world_size
    assert len({it for it in steps[0] if it}) >= 2, "and not the sanity check alone"
    assert compare(run.ledger, run.ledger).problems == []


class Seconds:
    """A clock for Lightning's loops and ours; each step takes one second of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        clock = SimpleNamespace(monotonic=lambda: self.now, perf_counter=lambda: self.now)
        for name in ("fit_loop", "training_epoch_loop", "evaluation_loop"):
            monkeypatch.setattr(import_module(f"{PACKAGE}.loops.{name}"), "time", clock)
        monkeypatch.setattr(lightning_loops, "time", clock)


class Timed(Hooks):
    """Notes at which steps a validation comes."""

    def __init__(self, clock: Seconds, stop_at: int = 0, saved: Any = None) -> None:
        options = {"val_check_interval": {"seconds": 5}, "num_sanity_val_steps": 0}
        super().__init__(stop_at, saved, max_epochs=3, **options)
        self.clock, self.validations = clock, list[int]()

    def validation_begins(self) -> None:
        self.validations.append(self.trainer.global_step)

    def boundary(self) -> None:
        self.clock.now += 1
        super().boundary()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("every", [2, 3, 4])
def test_attempts_that_are_shorter_than_the_interval_validate_as_one_that_is_long(
    every: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The time began anew with each attempt: jobs shorter than it never validated."""
    quiet = Timed(Seconds(monkeypatch))
    quiet.fit()
    assert quiet.validations == [6, 11, 16]
    validations: list[int] = []
    saved = None
    for stop_at in [*range(every, 18, every), 0]:
        clock = Seconds(monkeypatch)
        attempt = Timed(clock, stop_at, saved)
        clock.now += 7000  # which no step took
        file = tmp_path / f"{stop_at}.ckpt"
        if saved is not None:
            torch.save(saved["checkpoint"], file)
        try:
            attempt.fit(file if saved is not None else None)
        except StopError:
            saved = attempt.saved
        validations += attempt.validations
    assert validations == quiet.validations
