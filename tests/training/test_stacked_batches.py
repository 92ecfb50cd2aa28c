"""Outputs of all batches that the end of an epoch stacks, from real, short fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from hpc_train.training.rank_failure import failure_of
from tests.training.test_failing_frame import Data, cause_and_fix, place
from tests.training.test_failure_words import Net, fit

pytestmark = pytest.mark.filterwarnings("ignore")


class Collects(Net):
    def __init__(self) -> None:
        super().__init__()
        self.outs: list[Any] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        out = self.layer(batch[0])
        self.outs.append(out.detach())
        return out.mean()


class Stacks(Collects):
    def on_train_epoch_end(self) -> None:
        torch.stack(list(self.outs)).mean()


class StacksBelow(Collects):
    def on_train_epoch_end(self) -> None:
        self.score()

    def score(self) -> None:
        outs = [it.numpy() for it in self.outs]
        np.stack(outs).mean()


class AtTheEnd(pl.Callback):
    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        torch.stack(pl_module.outs).mean()  # type: ignore[arg-type]


def batches(samples: int) -> Data:
    return Data(DataLoader(TensorDataset(torch.ones(samples, 2)), batch_size=4))


@pytest.mark.parametrize("samples", [7, 9])
def test_the_outputs_of_all_batches_are_concatenated(tmp_path: Path, samples: int) -> None:
    told = fit(tmp_path, Stacks(), data=batches(samples))
    last = samples % 4
    assert told.fix == (
        f"the batches, of 4 and {last} samples, differ in length, as the last of an epoch does: "
        "write torch.cat for torch.stack"
    )
    assert told.where == place(Stacks.on_train_epoch_end, 1)
    cause, _ = cause_and_fix(told)
    assert "samples of one batch" not in cause
    assert "differ in their first size alone: [4, " in cause


def test_so_is_what_numpy_stacks_in_a_method_below(tmp_path: Path) -> None:
    told = fit(tmp_path, StacksBelow(), data=batches(7))
    assert told.fix.endswith("does: write np.concatenate for np.stack")
    assert told.where == place(StacksBelow.score, 2)


def test_so_is_what_a_callback_stacks(tmp_path: Path) -> None:
    told = fit(tmp_path, Collects(), AtTheEnd(), data=batches(7))
    assert told.fix.endswith("does: write torch.cat for torch.stack")


def test_a_stack_elsewhere_is_told_with_both_of_its_meanings() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.stack([torch.ones(2, 3), torch.ones(1, 3)])
    told = failure_of(caught.value)
    assert told.fix == ""
    cause, fix = cause_and_fix(told)
    assert cause.endswith("[2, 3] at entry 0 and [1, 3] at entry 1")
    assert "torch.cat(...)" in fix
    assert "pad them in the data set or in a collate_fn" in fix
