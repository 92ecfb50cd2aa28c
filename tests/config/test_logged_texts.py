"""A metric that nothing logs, where names have an open part, or a callback logs rates beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.fit.rate_names import may_be_a_rate
from tests.config.files import MINIMAL, write

NETS = """\
import pytorch_lightning as pl
from pytorch_lightning.callbacks import LearningRateMonitor
made = len

class Rates(LearningRateMonitor): pass

class Net(pl.LightningModule):
    def _step(self, batch, stage, *, kind="x"):
        LOGGED
        return batch.sum()
    def training_step(self, batch, batch_idx):
        return self._step(batch, "train")
    def validation_step(self, batch, batch_idx):
        self._step(batch, stage="val")
    def configure_optimizers(self):
        return made(self.parameters())

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
    def val_dataloader(self): return [1]
"""
CALLBACKS = "pytorch_lightning.callbacks"


def told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, logged: str, monitor: str, *others: str
) -> list[str]:
    """What is said of a ModelCheckpoint that waits for `monitor`, behind the key."""
    monkeypatch.chdir(folder)
    write(folder, NETS.replace("LOGGED", logged), "nets.py")
    keeps = f"class_path: {CALLBACKS}.ModelCheckpoint, init_args: {{monitor: {monitor}, mode: max}}"
    lines = [keeps, *(f"class_path: {it}" for it in others)]
    text = f"{MINIMAL}trainer:\n  max_epochs: 1\n  callbacks:\n"
    text += "".join(f"  - {{{it}}}\n" for it in lines)
    notes = api.load(write(folder, text)).notes
    return [it.partition("nets.Net ")[2] for it in notes if f" is {monitor}, and nets.Net" in it]


OTHERS = ("LearningRateMonitor", "DeviceStatsMonitor", "ThroughputMonitor", "RichProgressBar")


@pytest.mark.parametrize("other", [f"{CALLBACKS}.{it}" for it in OTHERS])
def test_a_callback_of_lightnings_that_logs_hides_no_metric_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    if other.endswith("ThroughputMonitor"):
        other += ", init_args: {batch_size_fn: nets.made}"
    (note,) = told(tmp_path, monkeypatch, 'self.log("val_dice", 1)', "val_iou", other)
    assert note.startswith("logs val_dice: write monitor: val_dice, or self.log(")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((it, True) for it in ("lr-Adam", "lr-Adam/pg1-momentum", "lr", "learning_rate")),
        *((it, True) for it in ("head-weight_decay", "generator", "train_lr", "adam")),
        *((it, False) for it in ("val_iou", "dice", "val/generator", "f1", "loss", "rmse")),
    ],
)
def test_a_name_of_a_stage_or_a_score_is_no_rates(name: str, is_one: bool) -> None:
    assert may_be_a_rate(name) == is_one


@pytest.mark.parametrize("monitor", ["lr-AdamW", "lr-SGD/pg2", "generator"])
def test_what_may_be_a_rate_is_passed_over_where_rates_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, monitor: str
) -> None:
    logged = 'self.log("val_dice", 1); self.log("lr-Adam", 1)'
    rates = f"{CALLBACKS}.LearningRateMonitor"
    assert told(tmp_path, monkeypatch, logged, monitor, rates) == []
    assert len(told(tmp_path, monkeypatch, logged, monitor)) == 1


def test_a_class_of_ones_own_that_derives_from_it_may_log_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(tmp_path, monkeypatch, 'self.log("dice", 1)', "val_iou", "nets.Rates") == []


BY_CALLS = "logs train_dice, val_dice: "
DICE = 'write monitor: val_dice, or self.log("val_iou", ...) in validation_step (nets.py:13)'


@pytest.mark.parametrize(
    ("logged", "monitor", "note"),
    [
        ('self.log(f"{stage}_dice", 1)', "val_iou", f"{BY_CALLS}{DICE}"),
        ('self.log(stage + "_dice", 1)', "val_iou", f"{BY_CALLS}{DICE}"),
        ('self.log_dict({f"{stage}_dice": 1})', "val_iou", f"{BY_CALLS}{DICE}"),
        (
            'self.log_dict({f"val/{it}": 1 for it in made()})',
            "valid_iou",
            'logs val/{it}: write self.log("valid_iou", ...) in validation_step (nets.py:13)',
        ),
        (
            'self.log("train_dice" if stage == "train" else "val_dice", 1)',
            "val_iou",
            f"{BY_CALLS}{DICE}",
        ),
        (
            'stage = made(stage); self.log(f"{self.stage}_dice", 1)',
            "val_iou",
            f"logs {{self.stage}}_dice: {DICE.replace('monitor: val_dice, or ', '')}",
        ),
    ],
)
def test_a_name_with_an_open_part_is_compared_by_what_is_known_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: str, monitor: str, note: str
) -> None:
    assert told(tmp_path, monkeypatch, logged, monitor) == [note]


@pytest.mark.parametrize(
    ("logged", "monitor"),
    [
        ('self.log(f"{stage}_dice", 1)', "val_dice"),
        ('self.log(f"{stage}_dice", 1)', "val_dice_epoch"),
        ('self.log(f"{stage}_dice", 1)', "val_dice/dataloader_idx_1"),
        ('self.log(f"{stage}_dice", 1)', "of_another_caller_dice"),
        ('self.log(f"{stage}{kind}", 1)', "val_iou"),
        ('self.log(f"{stage}_{kind}", 1)', "val_iou"),
        ("self.log(stage, 1)", "val_iou"),
        ('self.log("%s_iou" % stage, 1)', "val_iou"),
        ('self.log(made() if stage == "train" else "val_dice", 1)', "val_iou"),
        ('self.log_dict({f"val/{it}": 1 for it in made()})', "val/iou"),
        ("self.log_dict({it: 1 for it in made()})", "val/iou"),
    ],
)
def test_what_may_be_the_name_is_waited_for_without_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: str, monitor: str
) -> None:
    assert told(tmp_path, monkeypatch, logged, monitor) == []
