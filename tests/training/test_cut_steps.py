"""A share of an epoch's batches that is no whole number of steps is noted as the fit begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpc_train.plan.plan import Batch
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_notes
from hpc_train.training.fit_notes.cut_steps import note_cut_steps

TOLD = (
    "trainer.limit_train_batches 0.1 is 3 batches of each rank, no multiple of the 2 that are"
    " accumulated: the last step of each epoch has 16 of 32 samples; write"
    " trainer.limit_train_batches=2 or trainer.limit_train_batches=4"
)


def noted(folder: Path, batches: float, batch: Batch, limit: float, **rank: Any) -> list[str]:
    attempt = RunDir(folder).attempt(0)
    attempt.path.mkdir(parents=True)
    trainer: Any = SimpleNamespace(
        num_training_batches=batches, limit_train_batches=limit, overfit_batches=0.0
    )
    given = {"run": RunDir(folder), "attempt": 0, "rank": 0, "is_script": False, **rank}
    asked: Any = SimpleNamespace(batch=batch, **given)
    note_cut_steps(trainer, asked)
    note_cut_steps(trainer, asked)  # of the next attempt, say
    return read_notes(attempt)


TWO = Batch(global_batch_size=32, micro_batch_size=8, accumulate=2)


def test_a_share_that_ends_within_a_step_is_noted_once(tmp_path: Path) -> None:
    assert noted(tmp_path, 3, TWO, 0.1) == [TOLD]


@pytest.mark.parametrize(
    ("batches", "batch", "limit", "rank"),
    [
        (4, TWO, 0.1, {}),
        (3, replace(TWO, micro_batch_size=16, accumulate=1), 0.1, {}),
        (3, TWO, 3, {}),  # noted at submission
        (3, TWO, 1.0, {}),  # a stream's own end
        (float("inf"), TWO, 0.1, {}),
        (3, TWO, 0.1, {"rank": 1}),
        (3, TWO, 0.1, {"is_script": True}),
    ],
)
def test_whole_steps_are_left_alone(
    batches: float, batch: Batch, limit: float, rank: dict[str, Any], tmp_path: Path
) -> None:
    assert noted(tmp_path, batches, batch, limit, **rank) == []
