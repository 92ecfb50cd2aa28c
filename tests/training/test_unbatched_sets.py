"""A data set in a validation loader's place is told at what its samples lead to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from tests.training.test_failure_words import Net, fit

SET = TensorDataset(torch.zeros(6, 2), torch.zeros(6, dtype=torch.long))
SAID = "gives a TensorDataset, a data set without batches: write DataLoader(TensorDataset(...),"


class Validated(Net):
    def validation_step(self, batch: Any, index: int) -> None:
        x, y = batch
        self.log("far", (self.layer(x)[:, 0] - y[:]).mean())


class Data(pl.LightningDataModule):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held

    def train_dataloader(self) -> Any:
        return DataLoader(torch.ones(8, 2), batch_size=4)  # type: ignore[arg-type]

    def val_dataloader(self) -> Any:
        return self.held


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("held", [SET, [SET], {"a": SET}])
def test_it_is_told_with_the_hook_that_gave_it(tmp_path: Path, held: Any) -> None:
    line = Data.val_dataloader.__code__.co_firstlineno
    place = f"tests/training/test_unbatched_sets.py:{line}"
    told = fit(tmp_path, Validated(), data=Data(held)).fix
    assert told == f"{__name__}.Data.val_dataloader ({place}) {SAID} batch_size=32)"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "held",
    [
        DataLoader(TensorDataset(torch.zeros(6, 2, 3), torch.zeros(6)), batch_size=3),
        [DataLoader(TensorDataset(torch.zeros(6, 9), torch.zeros(6)), batch_size=3), SET],
        [[torch.zeros(6, 9), torch.zeros(6)]],
    ],
)
def test_another_failure_of_the_step_is_not_told_so(tmp_path: Path, held: Any) -> None:
    assert "without batches" not in fit(tmp_path, Validated(), data=Data(held)).fix


class Forgets(Net):
    def validation_step(self, batch: Any, index: int) -> None:
        nothing  # type: ignore[name-defined] # noqa: B018, F821


@pytest.mark.filterwarnings("ignore")
def test_an_error_of_no_value_is_not_told_so(tmp_path: Path) -> None:
    assert "without batches" not in fit(tmp_path, Forgets(), data=Data(SET)).fix
