"""A metric that a validation reads before the training has logged it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.failures.failure_words import fix_of
from tests.training.test_failure_words import fit

FILE = "tests/training/test_logged_later.py"


class Data(pl.LightningDataModule):
    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2)  # type: ignore[arg-type]

    val_dataloader = train_dataloader


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch: Any, index: int) -> Any:
        loss = self.layer(batch).mean()
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("val_loss", self.layer(batch).mean())

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


class ByEpoch(Net):
    def training_step(self, batch: Any, index: int) -> Any:
        loss = self.layer(batch).mean()
        self.log_dict({"other": loss, "train_loss": loss}, on_step=False, on_epoch=True)
        return loss


class ByName(Net):
    def training_step(self, batch: Any, index: int) -> Any:
        loss = self.layer(batch).mean()
        self.log(f"{'train'}_loss", loss)
        return loss


class Reads(pl.Callback):
    def __init__(self, name: str, *, checks: bool = False) -> None:
        self.name, self.checks = name, checks

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self.checks and trainer.sanity_checking:
            return
        _ = trainer.callback_metrics[self.name]


class ReadsItself(Net):
    def on_validation_epoch_end(self) -> None:
        found = self.trainer.callback_metrics
        _ = found["train_loss"]


class ReadsInStep(Net):
    def validation_step(self, batch: Any, index: int) -> None:
        _ = self.trainer.callback_metrics["train_loss"]


def line(method: Any, more: int = 0) -> str:
    return f"({FILE}:{method.__code__.co_firstlineno + more})"


LOGGED = f"train_loss is logged in training_step {line(Net.training_step, 2)}"
CHECK = "and this validation is the sanity check before the training"


@pytest.mark.filterwarnings("ignore")
def test_what_the_first_step_logs_is_told_in_the_validation_before_it(tmp_path: Path) -> None:
    told = fit(tmp_path, Net(), Reads("train_loss"), data=Data()).fix
    hook = f"on_validation_epoch_end {line(Reads.on_validation_epoch_end)}"
    first = f"write if trainer.sanity_checking: return as the first line of {hook}"
    assert told == f"{LOGGED}, {CHECK}: {first}"
    hook = f"on_validation_epoch_end {line(ReadsItself.on_validation_epoch_end)}"
    first = f"write if self.trainer.sanity_checking: return as the first line of {hook}"
    assert fit(tmp_path, ReadsItself(), data=Data()).fix == f"{LOGGED}, {CHECK}: {first}"
    told = fit(tmp_path, ReadsInStep(), data=Data()).fix
    only = "read it only where self.trainer.sanity_checking is False"
    assert told == f"{LOGGED}, {CHECK}: {only}"
    told = fit(tmp_path, ByName(), Reads("train_loss"), data=Data()).fix
    assert told.startswith(f"train_loss is not logged by then, {CHECK}: write if trainer.sanity")


@pytest.mark.filterwarnings("ignore")
def test_what_is_told_runs_through(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        fit(tmp_path, Net(), Reads("train_loss", checks=True), data=Data())


@pytest.mark.filterwarnings("ignore")
def test_what_is_logged_once_an_epoch_is_read_behind_the_validation(tmp_path: Path) -> None:
    for checks in (False, True):
        told = fit(tmp_path, ByEpoch(), Reads("train_loss", checks=checks), data=Data()).fix
        assert told == (
            f"train_loss of training_step {line(ByEpoch.training_step, 2)} has its value when the"
            " training epoch ends, behind the validation: read it in on_train_epoch_end"
        )
    told = fit(tmp_path, Net(), Reads("train_loss_epoch"), data=Data()).fix
    assert told.endswith("read it in on_train_epoch_end")


@pytest.mark.filterwarnings("ignore")
def test_a_name_that_no_step_logs_is_told_with_those_that_are(tmp_path: Path) -> None:
    for model in (Net(), ByName()):
        told = fit(tmp_path, model, Reads("valloss"), data=Data()).fix
        assert told == "callback_metrics has val_loss: did you mean 'val_loss'?"
    told = fit(tmp_path, Net(), Reads("accuracy"), data=Data()).fix
    assert told == "callback_metrics has val_loss"
    with pytest.raises(KeyError) as caught:
        _ = {"val_loss": 1}["train_loss"]
    assert "sanity" not in fix_of(caught.value)
