"""A validation's value without sync_dist is noted where there are several ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import MINIMAL, write

NETS = """\
import pytorch_lightning as pl
import torch

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.acc = object()
    def training_step(self, batch, batch_idx):
        loss = batch.sum()
        self.log("train_loss", loss)
        return loss
    def STEP(self, batch, batch_idx):
        loss = batch.sum()
        x, y = batch
        metric = self.acc
        LOG
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
    def val_dataloader(self): return [1]
    def test_dataloader(self): return [1]
"""


def notes_of(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: str,
    *shape: str,
    step: str = "validation_step",
) -> list[str]:
    monkeypatch.chdir(folder)
    write(folder, NETS.replace("LOG", log).replace("STEP", step), "nets.py")
    words = shape or ("slurm.nodes=1", "slurm.gpus_per_node=2")
    notes = api.load(write(folder, MINIMAL.replace("size: 8", "size: 24")), *words).notes
    return [it for it in notes if "sync_dist" in it]


@pytest.mark.parametrize("step", ["validation_step", "test_step"])
@pytest.mark.parametrize(
    "log",
    [
        "self.log('val_loss', loss)",
        "self.log('val_loss', loss, prog_bar=True)",
        "self.log(name='val_loss', value=loss)",
        "self.log('val_loss', loss.item())",
        "self.log('val_loss', loss / 2)",
        "self.log('val_loss', torch.nn.functional.mse_loss(x, y))",
        "self.log('val_loss', self.acc(x, y))",
    ],
)
def test_it_is_noted_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, step: str
) -> None:
    (note,) = notes_of(tmp_path, monkeypatch, log, step=step)
    assert note == (
        f"nets.py:16: self.log('val_loss') in {step} without sync_dist=True: with 2 ranks it is"
        " the value of rank 0's part of the data"
    )


def test_of_several_the_first_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = "self.log('a', loss); self.log('b', loss); self.log('c', loss, sync_dist=True)"
    (note,) = notes_of(tmp_path, monkeypatch, logs, "slurm.nodes=3", "slurm.gpus_per_node=4")
    assert "self.log('a') and 1 more in validation_step" in note
    assert "with 12 ranks" in note


@pytest.mark.parametrize(
    "log",
    [
        "self.log('a', loss, sync_dist=True)",
        "self.log('a', loss, sync_dist=self.several)",
        "self.log('a', loss, rank_zero_only=True)",
        "self.log('a', loss, **self.how)",
        "self.log('a', self.acc)",
        "self.log('a', metric)",
        "[self.log(k, m) for k, m in self.metrics.items()]",
        "v = self.all_gather(loss).mean(); self.log('a', v)",
        "v = self.trainer.strategy.reduce(loss); self.log('a', v)",
        "torch.distributed.all_reduce(loss); self.log('a', loss)",
        "self.log('a', 1.0)",
        "self.log_dict(self.metrics)",
        "print('a', loss)",
    ],
)
def test_what_is_gathered_or_an_object_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    assert notes_of(tmp_path, monkeypatch, log) == []


def test_with_one_rank_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("slurm.nodes=1", "slurm.gpus_per_node=1")
    assert notes_of(tmp_path, monkeypatch, "self.log('val_loss', loss)", *words) == []


def test_a_training_step_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert notes_of(tmp_path, monkeypatch, "self.log('a', loss)", step="helper") == []
