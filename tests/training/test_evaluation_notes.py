"""What is told of validation data before their first batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pytorch_lightning.trainer.states import TrainerFn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_notes
from hpc_train.training.fit_notes.evaluation_notes import said_of, tell_of_evaluation
from hpc_train.training.resume.sampling import evaluation_loader

SET = TensorDataset(torch.zeros(40, 1))
FILE = "tests/training/test_evaluation_notes.py"


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(())


class Endless(Dataset[int]):
    def __getitem__(self, index: int) -> int:
        return index


class Fixed(Dataset[int]):
    def __len__(self) -> int:
        return 0


class Data:
    def val_dataloader(self) -> Any:
        return Subset(SET, [1])


def said(loader: Any, world_size: int = 1) -> str:
    share = evaluation_loader(loader, rank=0, world_size=world_size, seed=0)
    return said_of(loader, share, "validated")


def test_a_set_without_a_sample_is_told_with_why() -> None:
    empty: Any = DataLoader(Subset(SET, []))
    told = "no sample, so nothing is validated: it is a Subset of 0 of the 40 samples of a Tensor"
    assert said_of(empty, empty, "validated").startswith(told)
    fixed: Any = DataLoader(Fixed())
    told = f"no sample, so nothing is tested: its {__name__}.Fixed is empty"
    assert said_of(fixed, fixed, "tested") == told


@pytest.mark.parametrize(
    ("size", "ranks", "told"),
    [(16, 1, "13 or 14"), (16, 2, "10"), (12, 1, "10"), (7, 1, "6 or 7"), (10, 1, ""), (10, 2, "")],
)
def test_batches_that_leave_no_sample_out_are_told_with_their_sizes(
    size: int, ranks: int, told: str
) -> None:
    loader: Any = DataLoader(SET, batch_size=size, drop_last=True)
    kept = f"each of the 40 samples is validated once, in batches of {told}"
    of = f"a loader with batch_size={size} and drop_last=True: {kept}"
    assert said(loader, ranks) == (of if told else "")
    assert said(DataLoader(SET, batch_size=size), ranks) == ""


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Stream()),
        DataLoader(Endless(), sampler=[1, 2]),
        DataLoader(SET, batch_sampler=[[1], [2, 3]]),
        [torch.zeros(2)],
        range(3),
    ],
)
def test_of_all_that_gives_batches_of_its_own_nothing_is_told(loader: Any) -> None:
    assert said_of(loader, loader, "validated") == ""


@pytest.mark.parametrize(
    ("of", "rank", "told"),
    [
        (TrainerFn.FITTING, 0, True),
        (TrainerFn.VALIDATING, 0, True),
        (TrainerFn.FITTING, 1, False),
        (None, 0, False),
    ],
)
def test_a_data_set_in_a_loaders_place_is_noted_once(
    tmp_path: Path, of: Any, rank: int, told: bool
) -> None:
    run = RunDir(tmp_path / "runs" / "x" / "20261127-120000-abcd")
    attempt = run.attempt(0)
    attempt.path.mkdir(parents=True)
    here: Any = SimpleNamespace(rank=rank, run=run, attempt=0)
    state = SimpleNamespace(fn=of)
    trainer = SimpleNamespace(state=state, datamodule=Data(), lightning_module=None)
    loaders = [Data().val_dataloader(), DataLoader(SET)]
    for _ in range(2):
        tell_of_evaluation(here, trainer, loaders, loaders)
    line = Data.val_dataloader.__code__.co_firstlineno
    note = (
        f"{__name__}.Data.val_dataloader ({FILE}:{line}) gives a Subset, a data set without"
        " batches: each sample is validated by itself; write DataLoader(Subset(...), batch_size=32)"
    )
    assert list(read_notes(attempt)) == [note] * told
