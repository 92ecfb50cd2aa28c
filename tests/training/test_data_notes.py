"""What is told of a train set before its first step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from hpc_train.training.fit_notes.data_notes import left_out, not_split, read_once


class Whole(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        info = torch.utils.data.get_worker_info()
        return iter(range(info.id if info else 0, 8))


class ByRank(Whole):
    def __init__(self, rank: int = 0) -> None:
        self.first = rank


class Data:
    def train_dataloader(self) -> Any:
        return DataLoader(Whole())


class Sharding:
    def setup(self) -> None:
        self.files = ["a"][torch.distributed.get_rank() :: 2]


def test_a_stream_that_each_rank_reads_whole_is_told() -> None:
    said = not_split(DataLoader(Whole()), Data(), 2)
    assert "Whole tells the 2 ranks apart, so each seems to read all of it, 2 times the" in said


@pytest.mark.parametrize(
    ("loader", "maker", "ranks"),
    [
        (DataLoader(Whole()), Data(), 1),
        (DataLoader(ByRank()), Data(), 2),
        (DataLoader(Whole()), Sharding(), 2),
        (DataLoader(Whole()), type("Made", (), {})(), 2),  # of which there is no text
        (DataLoader([1, 2]), Data(), 2),  # type: ignore[arg-type]
        ([1, 2], Data(), 2),
    ],
)
def test_what_is_or_may_be_split_is_not_told(loader: Any, maker: object, ranks: int) -> None:
    assert not_split(loader, maker, ranks) == ""


def test_samples_that_fill_no_global_batch_are_counted() -> None:
    loader: Any = DataLoader(list(range(250)))  # type: ignore[arg-type]
    assert left_out(loader, 32).startswith("26 of 250 samples fill no global batch of 32: each ep")
    assert left_out(loader, 25) == ""
    assert left_out(loader, 0) == ""
    assert left_out(DataLoader(Whole()), 32) == ""


def test_a_loader_that_can_be_read_once_is_told_where_a_second_epoch_may_come() -> None:
    once = iter(DataLoader([1, 2]))  # type: ignore[arg-type]
    said = "train_dataloader gives a SingleProcessDataLoaderIter, which is read once: behind its"
    for epochs in (2, None, -1):
        assert read_once(once, epochs).startswith(said)
        assert "return the DataLoader itself, without iter()" in read_once(once, epochs)
    assert "gives a generator, which is read once" in read_once((n for n in (1, 2)), 3)
    for loader in (DataLoader([1, 2]), [1, 2], range(3)):  # type: ignore[arg-type]
        assert read_once(loader, 2) == ""
    assert read_once(once, 1) == ""
