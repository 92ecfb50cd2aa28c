"""Sequences that a collate_fn pads with the time first are told where the labels do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from tests.training.test_failure_words import Net, fit

SAMPLES: Any = [(torch.randint(0, 9, (3 + number % 3,)), number % 2) for number in range(8)]


def padded(batch: list[Any]) -> Any:
    return pad_sequence([x for x, _ in batch]), torch.tensor([y for _, y in batch])


def well_padded(batch: list[Any]) -> Any:
    whole = pad_sequence([x for x, _ in batch], batch_first=True).T  # turned afterwards
    return whole, torch.tensor([y for _, y in batch])


class Padder:
    def __call__(self, batch: list[Any]) -> Any:
        xs, ys = padded(batch)
        xs = pad_sequence([x for x, _ in batch], padding_value=1)
        return {"x": xs, "y": ys}


class Sequences(pl.LightningDataModule):
    def __init__(self, collate: Any) -> None:
        super().__init__()
        self.collate = collate

    def train_dataloader(self) -> Any:
        return DataLoader(SAMPLES, 8, collate_fn=self.collate)


class Reader(Net):
    def __init__(self, collate: Any, *, fails: str = "") -> None:
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2)
        self.data, self.fails = Sequences(collate), fails

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        x, y = batch.values() if isinstance(batch, dict) else batch
        if self.fails:
            raise RuntimeError(self.fails)
        return functional.cross_entropy(self.head(self.embed(x).mean(1)), y)


def fix_of(folder: Path, model: Reader) -> str:
    return fit(folder, model, data=model.data).fix


HAS = "the batch has [5, 8] beside [8], the time first: write pad_sequence("


def line_of(function: Any, words: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(
        number
        for number, it in enumerate(lines, 1)
        if number > function.__code__.co_firstlineno and words in it
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("collate", "function", "words"),
    [
        (padded, padded, "[x for x, _ in batch]"),
        (Padder(), Padder.__call__, "[x for x, _ in batch], padding_value=1"),
    ],
)
def test_it_is_told_with_the_call_to_write(
    tmp_path: Path, collate: Any, function: Any, words: str
) -> None:
    line = line_of(function, f"pad_sequence({words}")
    place = f"(tests/training/test_time_first.py:{line})"
    assert fix_of(tmp_path, Reader(collate)) == f"{HAS}{words}, batch_first=True) {place}"


@pytest.mark.filterwarnings("ignore")
def test_where_it_is_not_sure_it_is_not_told(tmp_path: Path) -> None:
    assert "batch_first" not in fix_of(tmp_path, Reader(well_padded))
    assert "batch_first" not in fix_of(tmp_path, Reader(padded, fails="no sizes, 5 of them"))
    assert "batch_first" in fix_of(tmp_path, Reader(padded, fails="5 beside 8"))
