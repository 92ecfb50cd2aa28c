"""A train loader over a list of data sets is told as such, and not as a set that is too small."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Batch
from hpc_train.training.rank_failure import RankFailure, failure_of
from hpc_train.training.resume.sample_order import DataPosition
from hpc_train.training.resume.sampling import loader_at

ONE, TWO = (TensorDataset(torch.zeros(n, 2)) for n in (40, 60))


class Literal(pl.LightningDataModule):
    def train_dataloader(self) -> Any:
        first, second = ONE, TWO
        return DataLoader([first, second], batch_size=4)


class Kept(pl.LightningDataModule):
    def __init__(self) -> None:
        super().__init__()
        self.sets = (ONE, TWO)

    def train_dataloader(self) -> Any:
        other = DataLoader([ONE, TWO])
        return DataLoader(dataset=self.sets, batch_size=other.batch_size, shuffle=True)  # type: ignore[arg-type]


class Single(pl.LightningDataModule):
    def train_dataloader(self) -> Any:
        return DataLoader([ONE], batch_size=4)


class Elsewhere(pl.LightningDataModule):
    def train_dataloader(self) -> Any:
        return made([ONE, TWO])


def made(sets: Any) -> Any:
    return DataLoader(sets, batch_size=4)


def begun(datamodule: Any, global_batch_size: int = 32) -> RankFailure:
    with pytest.raises(ConfigError) as caught:
        at_start(datamodule.train_dataloader(), global_batch_size)
    return failure_of(caught.value)


def at_start(loader: Any, size: int = 32) -> Any:
    batch, start = Batch(size, size, 1), DataPosition(0, 0, 0)
    return loader_at(loader, start, batch, rank=0, world_size=1, saved_size=None)


@pytest.mark.parametrize("size", [2, 32])
def test_a_list_that_was_written_there_becomes_one_set(size: int) -> None:
    told = begun(Literal(), size)
    assert told.error == (
        "the data set of the loader that train_dataloader returns is a list of 2 data sets:"
        " [first, second] (write torch.utils.data.ConcatDataset([first, second]) for all of their"
        " samples)"
    )
    line = Literal.train_dataloader.__code__.co_firstlineno + 2
    assert told.where == f"{__file__}:{line}"


def test_what_the_data_keep_is_told_by_its_name_whatever_other_loaders_there_are() -> None:
    told = begun(Kept())
    assert "is a tuple of 2 data sets: self.sets" in told.error
    assert told.fix == (
        "take one of them, as self.sets[0], or torch.utils.data.ConcatDataset(self.sets)"
    )
    line = Kept.train_dataloader.__code__.co_firstlineno + 2
    assert told.where == f"{__file__}:{line}"


def test_a_list_of_one_is_that_one() -> None:
    assert begun(Single()).fix == "write ONE"


def test_a_loader_that_a_function_makes_is_told_without_its_line() -> None:
    told = begun(Elsewhere())
    assert "the train loader's data set is a list of 2 data sets (take one" in told.error


def test_a_list_of_samples_is_a_data_set() -> None:
    assert len(at_start(DataLoader([torch.zeros(2)] * 64))) == 2  # type: ignore[arg-type]


def test_a_collate_fn_of_ones_own_may_take_whole_sets() -> None:
    def first(sets: Any) -> Any:
        return sets[0][0]

    sets: Any = [ONE] * 32
    assert len(at_start(DataLoader(sets, collate_fn=first))) == 1


class Pair(Dataset[Any], tuple[Any]):  # type: ignore[misc]  # noqa: SLOT001
    """A sample that is a tuple, too."""


def test_samples_of_which_torch_makes_a_batch_are_samples() -> None:
    sets: Any = [Pair((torch.zeros(2),))] * 32
    assert next(iter(at_start(DataLoader(sets))))[0].shape == (32, 2)
