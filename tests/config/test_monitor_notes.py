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
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    returned: str = "o",
    callback: str = "",
    listed: bool = True,
) -> list[str]:
    monkeypatch.chdir(folder)
    write(folder, NETS.replace("RETURNED", returned), "nets.py")
    text = f"{MINIMAL}trainer:\n  max_epochs: 1\n"
    text += f"  callbacks:\n  {'- ' if listed else '  '}{{{callback}}}\n" if callback else ""
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


STOPS = "class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: %s, mode: %s}"
PLACE = "cfg.yaml:8: trainer.callbacks.0.init_args.monitor"
LOGS = "nets.Net logs train_loss, val_loss"
IN_STEP = "in validation_step (nets.py:7)"


@pytest.mark.parametrize(
    ("monitor", "write"),
    [
        ("val_acc", f'write monitor: val_loss, or self.log("val_acc", ...) {IN_STEP}'),
        ("validation/loss", "did you mean 'val_loss'?"),
        ("loss", "did you mean 'train_loss' or 'val_loss'?"),
        (
            "train_acc",
            'write monitor: train_loss, or self.log("train_acc", ...) in training_step (nets.py:4)',
        ),
        ("f1", 'write monitor: train_loss, or monitor: val_loss, or self.log("f1", ...)'),
        ("test_acc", 'write self.log("test_acc", ...) in test_step'),
    ],
)
def test_a_monitor_that_nothing_logs_is_told_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, monitor: str, write: str
) -> None:
    notes = notes_of(tmp_path, monkeypatch, callback=STOPS % (monitor, "max"))
    assert notes == [f"{PLACE} is {monitor}, and {LOGS}: {write}"]


SAY = "import pytorch_lightning as pl\nclass Base(pl.Callback): pass\n"
OF_OWN = "class_path: own.Say}\n  - {" + STOPS % ("val_acc", "min")
EPOCH = "    def on_train_epoch_end(self, trainer, pl_module): "


@pytest.mark.parametrize(
    ("body", "is_silent"),
    [
        ("class Say(pl.Callback):\n" + EPOCH + "print(trainer.current_epoch)\n", True),
        ("class Say(Base):\n" + EPOCH + "super().on_train_epoch_end(trainer, pl_module)\n", True),
        ("class Say(pl.Callback):\n" + EPOCH + 'self.log("val_acc", 1)\n', False),
        ("class Say(pl.Callback):\n" + EPOCH + 'pl_module.log_dict({"val_acc": 1})\n', False),
        ("class Say(pl.Callback):\n" + EPOCH + 'trainer.callback_metrics["val_acc"] = 1\n', False),
        ("class Say(pl.Callback):\n" + EPOCH + "self.given(pl_module)\n", False),
        ("class Say(pl.Callback):\n" + EPOCH + "say(module=pl_module)\n", False),
        ("class Below(Base):\n" + EPOCH + 'self.log("v", 1)\nclass Say(Below): pass\n', False),
        ("class Say(type(pl.Callback())): pass\n", False),
        ("Say = type(pl.Callback())\n", False),
    ],
)
def test_a_callback_of_ones_own_that_cannot_log_keeps_no_note_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, is_silent: bool
) -> None:
    write(tmp_path, f"{SAY}{body}", "own.py")
    assert len(notes_of(tmp_path, monkeypatch, callback=OF_OWN)) == is_silent


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('self.log("val_loss", 1)', 'self.log("val_loss", 1); self.log(f"{s}_acc", 1)'),
        ('self.log("val_loss", 1)', 'self.log("val_loss", 1); self.log_dict(self.scores())'),
        ('self.log("val_loss", 1)', 'self.log("val_loss", 1); self.log_dict({**made})'),
        ('self.log("val_loss", 1)', 'self.log("val_loss", 1); self.log(name="val_acc", value=1)'),
        ('self.log("val_loss", 1)', 'self.log("val_loss", 1); log = self.log; log("val_acc", 1)'),
        ('self.log("val_loss", 1)', 'self.log("val_loss", 1); given(module=self)'),
        (
            'self.log("val_loss", 1)',
            'self.log("val_loss", 1); self.trainer.callback_metrics["val_acc"] = 1',
        ),
        ("class Net(pl.LightningModule)", "class Net(Base)"),
        ("    def training_step", "    def configure_callbacks(self): ...\n    def training_step"),
    ],
)
def test_a_model_that_may_log_more_keeps_its_note_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    text = NETS.replace(old, new)
    monkeypatch.setattr(
        f"{__name__}.NETS", text.replace("class Net", "Base = pl.LightningModule\nclass Net")
    )
    assert notes_of(tmp_path, monkeypatch, callback=STOPS % ("val_acc", "max")) == []


@pytest.mark.parametrize(
    "monitor", ["val_loss", "val_loss/dataloader_idx_1", "train_loss_epoch", "epoch", "step"]
)
def test_what_is_logged_is_waited_for_without_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, monitor: str
) -> None:
    assert notes_of(tmp_path, monkeypatch, callback=STOPS % (monitor, "min")) == []


def test_rates_that_lightnings_own_callback_logs_are_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = "class_path: pytorch_lightning.callbacks.LearningRateMonitor}\n  - {"
    assert notes_of(tmp_path, monkeypatch, callback=rates + STOPS % ("lr-SGD", "min")) == []


def test_a_schedule_that_lowers_by_what_nothing_logs_is_told_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    returned = '{"optimizer": o, "lr_scheduler": s(o), "monitor": "val_f1"}'
    (note,) = notes_of(tmp_path, monkeypatch, returned=returned)
    write = '"monitor": "val_loss", or self.log("val_f1", ...) in validation_step (nets.py:7)'
    assert note == f"nets.py:11: the schedule's monitor is val_f1, and {LOGS}: write {write}"
    text = NETS.replace("val_loss", "val_acc")
    monkeypatch.setattr(f"{__name__}.NETS", text)
    (note,) = notes_of(tmp_path, monkeypatch, returned=returned.replace("val_f1", "val_loss"))
    assert '"monitor": "val_acc" and mode="max" for the schedule, or self.log("val_loss"' in note


DERIVED = """\
import nets
from nets import Net

class Renames(Net):
    def validation_step(self, batch, batch_idx):
        self.log("val/acc", 1)

class Adds(nets.Net):
    def validation_step(self, batch, batch_idx):
        super().validation_step(batch, batch_idx)
        self.log("val/acc", 1)

class Further(Renames):
    def training_step(self, batch, batch_idx):
        self.log("loss", 1)

class Two(Net, object):
    def validation_step(self, batch, batch_idx):
        self.log("val/acc", 1)
"""


@pytest.mark.parametrize(
    ("kind", "monitor", "logs"),
    [
        ("Renames", "val_acc", "train_loss, val/acc: did you mean 'val/acc'?"),
        ("Adds", "val_acc", "train_loss, val/acc, val_loss: did you mean 'val/acc'?"),
        ("Further", "val_acc", "loss, val/acc: did you mean 'val/acc'?"),
        ("Renames", "val/acc", ""),
        ("Adds", "val_loss", ""),
        ("Further", "train_loss", "loss, val/acc: did you mean 'loss'?"),
        ("Two", "val_acc", ""),
    ],
)
def test_a_model_of_an_own_base_in_another_file_is_read_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, monitor: str, logs: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, NETS.replace("RETURNED", "o"), "nets.py")
    write(tmp_path, DERIVED, "own.py")
    checkpoint = KEEPS.replace("filename: '%s'", f"monitor: {monitor}")
    text = MINIMAL.replace("nets.Net", f"own.{kind}")
    assert text != MINIMAL
    text += f"trainer:\n  max_epochs: 1\n  callbacks:\n  - {{{checkpoint}}}\n"
    notes = [it for it in api.load(write(tmp_path, text)).notes if " logs " in it]
    assert [it.partition(" logs ")[2] for it in notes] == ([logs] if logs else [])


def test_a_callback_without_a_list_is_looked_at_as_one_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = notes_of(tmp_path, monkeypatch, callback=STOPS % ("val_acc", "max"), listed=False)
    place = PLACE.replace("callbacks.0", "callbacks")
    write = f'write monitor: val_loss, or self.log("val_acc", ...) {IN_STEP}'
    assert notes == [f"{place} is val_acc, and {LOGS}: {write}"]
