"""NaN that the data themselves hold, once a training has become NaN: real, short fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, random_split

from hpc_train.runs.layout import RunDir
from hpc_train.training.fit_notes.data_not_finite import not_finite_in_data
from hpc_train.training.loggers import make_loggers
from tests.training.test_failure_words import Net

pytestmark = pytest.mark.filterwarnings("ignore")
NAN = float("nan")


class Pairs(Net):
    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        x = batch["x"] if isinstance(batch, dict) else batch[0]
        return self.layer(x).mean()


class Asks(pl.Callback):
    said = "not asked"

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        self.said = not_finite_in_data()


class Made(Dataset[Any]):
    """One whose numbers are made, or read, with each sample."""

    def __init__(self, value: float) -> None:
        self._value = value

    def __getitem__(self, index: int) -> Any:
        return {"x": torch.tensor([1.0, self._value]), "name": "a", "y": index}

    def __len__(self) -> int:
        return 4


class Kept(Made):
    def __init__(self, value: float) -> None:
        super().__init__(1.0)
        self.table = np.array([1.0, value])


def said(tmp_path: Path, dataset: Any, asks: Asks | None = None, batches: int = 1) -> str:
    asks = asks or Asks()
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=1,
        limit_train_batches=batches,
        callbacks=[asks],
        default_root_dir=str(tmp_path),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Pairs(), DataLoader(dataset, batch_size=2))
    return asks.said


class Logs(Asks):
    def __init__(self, run: RunDir) -> None:
        (self.csv,) = make_loggers(["csv"], run, 0)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        self.csv.log_metrics({"loss": NAN}, step=3)
        self.csv.finalize("success")


def table(place: int, value: float = NAN) -> TensorDataset:
    x = torch.ones(8, 2)
    x[place, 1] = value
    return TensorDataset(x, torch.ones(8))


def test_a_batch_that_holds_nan_is_told_with_its_tensor(tmp_path: Path) -> None:
    assert said(tmp_path, table(1)) == "the batch holds NaN itself (batch[0], 1 of 4 values)"
    told = said(tmp_path, Made(NAN))
    assert told == "the batch holds NaN itself (batch['x'], 2 of 4 values)"
    told = said(tmp_path, table(0, float("inf")))
    assert told == "the batch holds infinite values itself (batch[0], 1 of 4 values)"


def test_a_set_that_holds_nan_is_told_where_the_batch_does_not(tmp_path: Path) -> None:
    whole = "holds NaN itself (tensors[0], 1 of 16 values)"
    assert said(tmp_path, table(7)) == f"the train set, a TensorDataset, {whole}"
    told = said(tmp_path, Subset(table(7), [0, 1, 7]))
    assert told == "the train set, a Subset, holds NaN itself (dataset.tensors[0], 1 of 6 values)"
    told = said(tmp_path, Kept(NAN))
    assert told == "the train set, a Kept, holds NaN itself (table, 1 of 2 values)"


def test_a_set_within_sets_is_told_with_its_place(tmp_path: Path) -> None:
    """Stations of which one has a gap; a part of them, split at random; a set of one's own."""
    parts = ConcatDataset([Kept(1.0), Kept(1.0), Kept(NAN)])
    told = "the train set, a {}, holds NaN itself ({}, 1 of 2 values)"
    assert said(tmp_path, parts) == told.format("ConcatDataset", "datasets[2].table")
    split, _ = random_split(parts, [8, 4], torch.Generator().manual_seed(0))
    assert said(tmp_path, split) == told.format("Subset", "dataset.datasets[2].table")
    deep = ConcatDataset([Kept(1.0), Subset(parts, range(12))])
    assert said(tmp_path, deep) == told.format(
        "ConcatDataset", "datasets[1].dataset.datasets[2].table"
    )
    own = Made(1.0)
    own.kept = {"a": Kept(1.0), "b": Kept(NAN)}  # type: ignore[attr-defined]
    assert said(tmp_path, own) == told.format("Made", "kept['b'].table")


def test_nan_that_only_another_part_takes_is_not_blamed(tmp_path: Path) -> None:
    assert said(tmp_path, Subset(table(7), range(7))) == ""
    assert said(tmp_path, Subset(Subset(table(7), [7, 6, 5, 4]), [1, 2, 3])) == ""
    assert said(tmp_path, Subset(ConcatDataset([table(7, 1.0), table(7)]), range(15))) == ""
    told = said(tmp_path, Subset(ConcatDataset([table(7, 1.0), table(7)]), [0, 1, 15]))
    assert told.endswith("(dataset.datasets[1].tensors[0], 1 of 2 values)")
    itself = Made(1.0)
    itself.dataset = itself  # type: ignore[attr-defined]
    assert said(tmp_path, itself) == ""


def test_the_note_of_a_loss_that_is_nan_blames_the_data_and_no_learning_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDir(tmp_path)
    run.attempt(0).path.mkdir(parents=True)
    run.latest.symlink_to(run.attempt(0).path)
    for dataset, told in ((table(1), "the batch holds NaN itself"), (table(1, 1.0), "where that")):
        said(tmp_path, dataset, Logs(run))
        noted = capsys.readouterr().out
        assert f"note: loss was nan at step 3: {told}" in noted
        assert ("learning rate" in noted) is (told == "where that")


def test_what_cannot_be_looked_at_ends_no_training(tmp_path: Path) -> None:
    odd = Kept(1.0)
    odd.table = np.ones(4, dtype=">f4")
    odd.other = torch.ones(2, 2).to_sparse()  # type: ignore[attr-defined]
    odd.deep = [[[[[[NAN]]]]], "nan", {"a": None}]  # type: ignore[attr-defined]
    assert said(tmp_path, odd) == ""


def test_finite_data_are_not_blamed(tmp_path: Path) -> None:
    assert said(tmp_path, table(1, 1.0)) == ""
    assert said(tmp_path, Made(1.0)) == ""
    assert not_finite_in_data() == ""
