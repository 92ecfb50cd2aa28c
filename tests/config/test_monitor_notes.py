"""A metric that a schedule waits for or a file's name has, and that the model never logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import MINIMAL, write

NETS = """\
import pytorch_lightning as pl; make = s = len

class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        self.log("train_loss", 1)
        return batch.sum()
    def validation_step(self, batch, batch_idx):
        self.log("val_loss", 1)
    def configure_optimizers(self):
        o = make(self.parameters())
        return RETURNED

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
    def val_dataloader(self): return [1]
"""
KEEPS = "class_path: pytorch_lightning.callbacks.ModelCheckpoint, init_args: {filename: '%s'}"


def notes_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, returned: str = "o", callback: str = ""
) -> list[str]:
    monkeypatch.chdir(folder)
    write(folder, NETS.replace("RETURNED", returned), "nets.py")
    text = f"{MINIMAL}trainer:\n  max_epochs: 1\n"
    text += f"  callbacks:\n  - {{{callback}}}\n" if callback else ""
    notes = api.load(write(folder, text)).notes
    return [it.replace(f"{folder}/", "") for it in notes if "logs train_loss" in it]


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ('{"optimizer": o, "lr_scheduler": s(o), "monitor": "validation_loss"}', True),
        ('{"optimizer": o, "lr_scheduler": {"scheduler": s(o), "monitor": "val_los"}}', True),
        ('[o], [{"scheduler": s(o), "monitor": "val_los"}]', True),
        ('{"optimizer": o, "lr_scheduler": s(o), "monitor": "val_loss"}', False),
        ('{"optimizer": o, "lr_scheduler": s(o), "monitor": "train_loss_epoch"}', False),
        ('{"optimizer": o, "lr_scheduler": s(o), "monitor": self.hparams.monitor}', False),
        ('{"optimizer": o, **self.more()}', False),
        ("o", False),
    ],
)
def test_a_schedules_monitor_that_nothing_logs_is_noted_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returned: str, told: bool
) -> None:
    metric = "validation_loss" if "validation" in returned else "val_los"
    said = f"nets.py:11: the schedule's monitor is {metric}, and nets.Net logs train_loss, val_loss"
    notes = notes_of(tmp_path, monkeypatch, returned=returned)
    assert len(notes) == told
    assert not told or notes[0].startswith(f"{said}: did you mean 'val_loss'")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("{epoch}-{val_los:.2f}", "val_los"),
        ("{epoch}-{step}", ""),
        ("e{epoch:03d}-{val_loss:.2f}-{train_loss_step:.2f}", ""),
        ("best", ""),
    ],
)
def test_a_metric_in_a_files_name_that_nothing_logs_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    notes = notes_of(tmp_path, monkeypatch, callback=KEEPS % name)
    key = "cfg.yaml:8: trainer.callbacks.0.init_args.filename"
    said = f"{key} has {told}, and nets.Net logs train_loss, val_loss: did you mean 'val_loss'?"
    assert notes == ([said] if told else [])
