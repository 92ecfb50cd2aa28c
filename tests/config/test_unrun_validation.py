"""A callback that waits for a metric of a validation that will not run is told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
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
        return make(self.parameters())
"""
DATA = """
class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
"""
VALIDATES = "    def val_dataloader(self): return [1]\n"
STOPS = "{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: val_loss}}"
KEEPS = STOPS.replace("EarlyStopping", "ModelCheckpoint")


def told(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    nets: str = NETS + DATA,
    *,
    callbacks: str = STOPS,
    trainer: str = "",
) -> tuple[str, str]:
    """The refusal of a config with those callbacks, and its notes."""
    monkeypatch.chdir(folder)
    write(folder, nets, "nets.py")
    text = f"{MINIMAL}trainer:\n  callbacks:\n  - {callbacks}\n{trainer}"
    try:
        notes = [it for it in api.load(write(folder, text)).notes if "validation runs" in it]
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}", ""
    return "", "".join(notes).replace(f"{folder}/", "")


WHERE = "cfg.yaml:7: trainer.callbacks.0.init_args.monitor is val_loss, which nets.Net logs in"
LACKS = "nets.Data (nets.py:12) has no val_dataloader: no validation runs"


def test_the_missing_loader_is_told_with_the_lines_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fix = "write def val_dataloader(self) in nets.Data, or monitor: train_loss"
    said = f"{WHERE} validation_step (nets.py:8), and {LACKS}"
    assert told(tmp_path, monkeypatch) == (f"{said} -> {fix}", "")
    assert told(tmp_path, monkeypatch, callbacks=KEEPS) == ("", f"{said}; {fix}")  # it only warns


def test_a_loader_of_another_name_is_to_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nets = NETS + DATA + VALIDATES.replace("val_", "valid_")
    refused, _ = told(tmp_path, monkeypatch, nets)
    assert refused.endswith("-> rename valid_dataloader to val_dataloader, or monitor: train_loss")


def test_a_helper_that_the_other_loaders_call_is_not_to_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nets = (NETS + DATA).replace(
        "def train_dataloader(self): return ",
        "def _dataloader(self): return []\n"
        "    def train_dataloader(self): return self._dataloader() or ",
    )
    assert "_dataloader() or" in nets
    refused, _ = told(tmp_path, monkeypatch, nets)
    assert "-> write def val_dataloader(self) in nets.Data" in refused


@pytest.mark.parametrize("zero", ["0", "0.0"])
def test_a_limit_of_no_batches_is_told_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zero: str
) -> None:
    limit = f"  limit_val_batches: {zero}\n"
    refused, _ = told(tmp_path, monkeypatch, NETS + DATA + VALIDATES, trainer=limit)
    assert "and trainer.limit_val_batches is 0: no validation runs -> leave trainer.lim" in refused


@pytest.mark.parametrize(
    ("nets", "callbacks", "trainer"),
    [
        (NETS + DATA + VALIDATES, STOPS, ""),
        (NETS + DATA + VALIDATES, STOPS, "  limit_val_batches: 1\n"),
        (NETS + DATA, STOPS.replace("val_loss", "train_loss"), ""),
        (NETS.replace("train_loss", "val_loss") + DATA, STOPS, ""),  # logged in both
        (NETS + DATA.replace("pl.LightningDataModule", "Base"), STOPS, ""),
        (NETS + "from elsewhere import Base\n" + DATA.replace("pl.Light", "Base, pl.Light"),
         STOPS, ""),
        (NETS + DATA.replace("class Data", "class Base") + VALIDATES
         + "class Data(Base):\n    pass\n", STOPS, ""),
        (NETS + DATA + "Data.val_dataloader = Data.train_dataloader\n", STOPS, ""),
        (NETS.replace('"val_loss"', 'f"{self.stage}_loss"') + DATA, STOPS, ""),
        (NETS.replace("return batch.sum()", "return self.validation_step(batch, 0)") + DATA,
         STOPS, ""),
        (NETS + DATA, "{class_path: pytorch_lightning.callbacks.ModelSummary}", ""),
        (NETS + DATA, STOPS, "  fast_dev_run: true\n"),
    ],
)  # fmt: skip
def test_nothing_is_said_where_a_validation_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nets: str, callbacks: str, trainer: str
) -> None:
    refused, notes = told(tmp_path, monkeypatch, nets, callbacks=callbacks, trainer=trainer)
    assert "validation runs" not in refused
    assert not notes


@pytest.mark.parametrize(
    ("more", "trainer"),
    [
        (", strict: false", ""),
        (", check_on_train_epoch_end: false", ""),
        ("", "  check_val_every_n_epoch: 2\n"),
        ("", "  - {class_path: nets.Own}\n"),  # which may log it
    ],
)
def test_a_fit_that_may_end_well_gets_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, trainer: str
) -> None:
    stops = STOPS.replace("val_loss", f"val_loss{more}")
    nets = f"{NETS}{DATA}class Own(pl.Callback): ...\n"
    refused, notes = told(tmp_path, monkeypatch, nets, callbacks=stops, trainer=trainer)
    assert not refused
    assert LACKS in notes


def test_a_loader_of_the_model_is_told_to_be_moved_into_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lightning asks a DataModule alone, where there is one."""
    refused, _ = told(tmp_path, monkeypatch, NETS + VALIDATES + DATA)
    assert refused.endswith(
        "nets.Data (nets.py:13) has no val_dataloader, and beside a DataModule that of nets.Net"
        " (nets.py:11) is not asked: no validation runs -> move val_dataloader into nets.Data, or"
        " monitor: train_loss"
    )
