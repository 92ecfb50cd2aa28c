"""Interrupted trainings against undisturbed ones, over the arguments of Lightning's Trainer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.training.ranks import Run
from tests.training.test_exactly_once import FINISHED, SAVED, assert_same

STREAM: dict[str, Any] = {"data": "stream", "samples": 300}
SPECS: dict[str, dict[str, Any]] = {
    "loaders made anew each epoch": {"trainer": {"reload_dataloaders_every_n_epochs": 1}},
    "and in data workers, every second": {
        "trainer": {"reload_dataloaders_every_n_epochs": 2},
        "workers": 2,
    },
    "some batches again and again": {"trainer": {"overfit_batches": 4}},
    "validation by batches over epochs": {
        "trainer": {"check_val_every_n_epoch": None, "val_check_interval": 5}
    },
    "validation of every second epoch": {"trainer": {"check_val_every_n_epoch": 2}, "epochs": 4},
    "validation without inference mode": {"trainer": {"inference_mode": False}},
    "the first batches of an epoch": {"trainer": {"limit_train_batches": 4}},
    "half of an epoch": {"trainer": {"limit_train_batches": 0.5}},
    "the first batches of a stream": {"trainer": {"limit_train_batches": 3}, **STREAM},
    "and in data workers": {"trainer": {"limit_train_batches": 4}, **STREAM, "workers": 2},
    "half of a stream that knows its length": {
        "trainer": {"limit_train_batches": 0.5},
        **STREAM,
        "data": "sized_stream",
    },
    "least steps under early stopping": {
        "trainer": {"min_steps": 14, "val_check_interval": 0.5},
        "early_stopping": True,
        "epochs": 9,
    },
    "numbers logged rarely": {"trainer": {"log_every_n_steps": 50}},
    "gradients clipped by value": {
        "trainer": {"gradient_clip_val": 0.5, "gradient_clip_algorithm": "value"},
        "accumulate": 2,
    },
    "weights averaged from the middle on": {
        "callbacks": {"StochasticWeightAveraging": {"swa_lrs": 0.01, "swa_epoch_start": 0.5}},
        "epochs": 4,
    },
    "numbers of 64 bits": {"trainer": {"precision": "64-true"}},
    "numbers of 16 bits": {"trainer": {"precision": "bf16-true"}},
    "one batch an epoch": {"samples": 13, "epochs": 5},
}


def validations(run: Run) -> list[int]:
    logs = "".join(run.log(attempt, 0) for attempt in range(run.attempt))
    return sorted({int(it) for it in re.findall(r"validates at step (\d+)", logs)} - {0})


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_stops_around_the_end_of_an_epoch_change_nothing(
    spec: dict[str, Any], world_size: int, tmp_path: Path
) -> None:
    spec = {"epochs": 3, "plateau": False, **spec}
    quiet = Run(tmp_path / "quiet", **spec)
    assert quiet.run(world_size) == [FINISHED] * world_size, quiet.log(0, 0)
    of_first_epoch = max(entry.step for entry in quiet.ledger if entry.epoch == 0)
    last = max(entry.step for entry in quiet.ledger)
    run = Run(tmp_path / "run", **spec)
    for step in sorted({of_first_epoch, of_first_epoch + 1, last - 1}):
        stopped = run.run(world_size, f"stop@step={step}:rank={world_size - 1}")
        assert stopped == [SAVED] * world_size, run.log(run.attempt - 1, 0)
    assert run.run(world_size) == [FINISHED] * world_size, run.log(run.attempt - 1, 0)
    assert_same(quiet, run)
    assert validations(run) == validations(quiet)
