"""A line that takes a batch, or a layer's output, apart into another number of parts."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hpc_train.training.failures.failure_words import fix_of
from tests.training.test_failure_words import Net, fit

X, Y = torch.zeros(40, 2), torch.zeros(40)


class Pair(Net):
    def training_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        return (self.layer(x) - y).square().mean()


class Alone(Dataset[Any]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        return X[index]


class Data(pl.LightningDataModule):
    def __init__(self, dataset: Any, collate_fn: Any = None) -> None:
        super().__init__()
        self.dataset, self.collate_fn = dataset, collate_fn

    def train_dataloader(self) -> Any:
        return DataLoader(self.dataset, batch_size=8, collate_fn=self.collate_fn)


def stacked(samples: Any) -> Any:
    return torch.stack([x for (x,) in samples])


@pytest.mark.filterwarnings("ignore")
def test_a_batch_of_one_tensor_is_told_with_the_data_set_that_gives_no_labels(
    tmp_path: Path,
) -> None:
    one = "batch is one tensor of shape [8, 2]"
    assert fit(tmp_path, Pair(), data=Data(X)).fix == (
        f"{one}, as the data set is a tensor of shape [40, 2]: write x = batch, or"
        " TensorDataset(x, y) for the data"
    )
    line = Alone.__getitem__.__code__.co_firstlineno
    assert fit(tmp_path, Pair(), data=Data(Alone())).fix == (
        f"{one}, as {__name__}.Alone.__getitem__ (tests/training/test_taken_apart.py:{line})"
        " gives one: write x = batch, or return x, y there"
    )
    assert fit(tmp_path, Pair(), data=Data(TensorDataset(X), stacked)).fix == (
        f"{one}: write x = batch, or have the data set give x, y"
    )
    assert fit(tmp_path, Pair(), data=Data(TensorDataset(X))).fix == (
        "batch is a list of 1 part (a tensor of shape [8, 2]): write x = batch[0]"
    )
    assert fit(tmp_path, Pair(), data=Data(TensorDataset(X, Y, Y))).fix == (
        "batch is a list of 3 parts (a tensor of shape [8, 2], a tensor of shape [8], a tensor of"
        " shape [8]): write x, y, _ = batch"
    )


def two(batch: Any) -> Any:
    x, y = batch
    return x, y


def three(batch: Any) -> Any:
    x, y, z = batch
    return x, y, z


def nested(batch: Any) -> Any:
    (a, b), y = batch
    return a, b, y


def rest(batch: Any) -> Any:
    x, y, *_ = batch
    return x, y


def looped(batch: Any) -> Any:
    return [x + y for x, y in batch]


class Tensor:
    @property
    def shape(self) -> Any:
        raise RuntimeError("of a nested tensor")

    def __iter__(self) -> Any:
        return iter("abc")


def test_what_does_not_let_itself_be_read_is_left_as_it_is() -> None:
    with pytest.raises(ValueError, match="unpack") as caught:
        two(Tensor())
    assert not fix_of(caught.value)


LSTM, GRU = nn.LSTM(2, 3), nn.GRU(2, 3)


def three_of_lstm(x: Any) -> Any:
    out, h, c = LSTM(x)
    return out, h, c


def states_of_gru(x: Any) -> Any:
    out, (h, c) = GRU(x)
    return out, h, c


@pytest.mark.parametrize(
    ("call", "batch", "told"),
    [
        (two, X, "batch is one tensor of shape [40, 2], and no pair"),
        (three, (X, Y), "]): write x, y = batch"),
        (three, X, "and no group"),
        (two, [1, "a", None], "batch is a list of 3 parts (int, str, NoneType): write x, y, _ ="),
        (two, (), "batch is a tuple of 0 parts there"),
        (two, range(3), ""),
        (two, list(range(9)), "batch is a list of 9 parts there"),
        (nested, [(X, X, X), Y], "batch[0] is a tuple of 3 parts"),
        (nested, [X, Y], "batch[0] is one tensor of shape [40, 2], and no pair"),
        (nested, [(X, X)], "batch is a list of 1 part"),
        (rest, (X,), ""),
        (looped, [(1, 2, 3)], ""),
        (two, 3, ""),
        (three_of_lstm, X, "LSTM, an nn.LSTM, gives a pair: write out, (h, c) = LSTM(x)"),
        (states_of_gru, torch.zeros(1, 4, 2), "an nn.GRU, gives a pair: write out, h = GRU(x)"),
    ],
)
def test_what_stands_there_is_told_with_what_to_write(
    call: Callable[[Any], Any], batch: Any, told: str
) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        call(batch)
    fix = fix_of(caught.value)
    assert told in fix
    assert bool(fix) is bool(told)


def words(x: Any) -> Any:
    a, b = x.split()
    return a, b


def fields(x: Any) -> Any:
    a, b = x.split(",", 4)
    return a, b


def read_words(x: Any) -> Any:
    a, b = x.read().split()
    return a, b


def split_tensor(x: Any) -> Any:
    a, b = x.split(8)
    return a, b


@pytest.mark.parametrize(
    ("call", "value", "fix"),
    [
        (words, "a b c", "x is 'a b c' there, of which x.split() makes 3 parts"),
        (words, "a" * 90, f"x is '{'a' * 60}...' there, of which x.split() makes 1 part"),
        (fields, "0.1", "x is '0.1' there, of which x.split(',', 4) makes 1 part"),
        (read_words, StringIO(""), "print(x.read()) in front of that line tells what it splits"),
        (split_tensor, X, ""),
    ],
)
def test_a_text_that_is_taken_apart_is_told_as_it_is(
    call: Callable[[Any], Any], value: Any, fix: str
) -> None:
    with pytest.raises(ValueError, match="values to unpack") as caught:
        call(value)
    assert fix_of(caught.value) == fix


def size_of_terminal() -> Any:
    _, width = os.popen("stty size 2>/dev/null < /dev/null").read().split()
    return width


def size_of_output() -> int:
    with Path(os.devnull).open() as file:
        return os.get_terminal_size(file.fileno()).columns


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed")
def test_the_size_of_a_terminal_that_a_job_has_not_is_told_with_what_to_write() -> None:
    with pytest.raises(ValueError, match="values to unpack") as unpacked:
        size_of_terminal()
    size = "shutil.get_terminal_size()"
    says = "a job has no terminal: write"
    assert fix_of(unpacked.value) == f"{says} width = {size}.columns, and import shutil"
    with pytest.raises(OSError, match="ioctl") as refused:
        size_of_output()
    assert fix_of(refused.value) == f"{says} {size} for it, and import shutil"
