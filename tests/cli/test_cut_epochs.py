"""A number of batches that cuts an epoch within a step, or to one batch: a note, and no refusal."""

from __future__ import annotations

import pytest

from tests.cli.conftest import DIGITS

# 96 samples a step by 2 x 2 ranks: 8 a rank, 3 times.
THREE = ["micro_batch_size=8"]
LIMIT = "trainer.limit_train_batches"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            [f"{LIMIT}=1", *THREE],
            (
                f"{LIMIT} is 1, no multiple of the 3 that are accumulated: the only step of each"
                " epoch has 32 of 96 samples; write 3, or 1.0 for all of the epoch"
            ),
        ),
        (
            [f"{LIMIT}=5", *THREE],
            (
                f"{LIMIT} is 5, no multiple of the 3 that are accumulated: the last step of each"
                " epoch has 64 of 96 samples; write 3 or 6"
            ),
        ),
        (
            ["trainer.overfit_batches=1", *THREE],
            (
                "trainer.overfit_batches is 1, no multiple of the 3 that are accumulated: the only"
                " step of each epoch has 32 of 96 samples; write 3"
            ),
        ),
        (
            [f"{LIMIT}=1"],
            (
                f"{LIMIT} is 1, a whole number: each epoch has one batch of each rank; write 1.0"
                " for all of the epoch"
            ),
        ),
    ],
)
def test_an_epoch_that_is_cut_is_noted_with_what_to_write(hpc, words: list[str], told: str) -> None:
    said = hpc("submit", DIGITS, "--dry-run", *words)
    assert said.code == 0
    assert f"note: command line: {told}\n" in said.err


@pytest.mark.parametrize(
    "words",
    [
        THREE,
        [f"{LIMIT}=6", *THREE],
        [f"{LIMIT}=1.0", *THREE],
        [f"{LIMIT}=0.1", *THREE],  # how many these are is known in the job
        [f"{LIMIT}=5"],
        ["trainer.overfit_batches=1"],
        ["trainer.overfit_batches=0", *THREE],
        [f"{LIMIT}=1", "trainer.fast_dev_run=true", *THREE],
    ],
)
def test_whole_steps_and_shares_are_left_alone(hpc, words: list[str]) -> None:
    said = hpc("submit", DIGITS, "--dry-run", *words)
    assert said.code == 0
    assert f"{LIMIT} is" not in said.err
    assert "overfit_batches is" not in said.err
