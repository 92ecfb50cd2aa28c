"""Train data that are no loader are told with what gave them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from hpc_train.errors import ConfigError
from hpc_train.training.fit_notes.no_batches import check_batches

SET = TensorDataset(torch.zeros(4, 2))


class Data(pl.LightningDataModule):
    def train_dataloader(self) -> Any:
        return SET


def refusal(loader: object, maker: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        check_batches(loader, maker)
    return caught.value


def test_a_data_set_in_a_loaders_place_is_told_with_the_method_that_gave_it() -> None:
    line = Data.train_dataloader.__code__.co_firstlineno
    error = refusal(SET, Data())
    place = f"{Path(__file__).relative_to(Path.cwd())}:{line}"
    assert error.message == (
        f"{__name__}.Data.train_dataloader ({place}) gives a TensorDataset, a data set without"
        " batches"
    )
    assert error.hint == "write DataLoader(TensorDataset(...), batch_size=32, shuffle=True)"
    assert "gives None, which has no batches" in refusal(None, Data()).message


def test_without_such_a_method_the_line_that_called_is_told() -> None:
    error = refusal(SET, pl.LightningModule())
    assert error.message.endswith("is given a TensorDataset, a data set without batches")
    assert Path(__file__).name in error.message


def test_what_can_be_iterated_is_taken() -> None:
    for loader in (DataLoader(SET), [1, 2], iter([1])):
        check_batches(loader, Data())
