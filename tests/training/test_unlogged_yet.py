"""A metric that is read in the training before anything has logged it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl

from hpc_train.training.failures.failure_words import fix_of
from tests.training.test_failure_words import fit
from tests.training.test_logged_later import ByName, Data, Net

FILE = "tests/training/test_unlogged_yet.py"
OF_NET = "tests/training/test_logged_later.py"


class ReadsAtStart(pl.Callback):
    def __init__(self, name: str) -> None:
        self.name = name

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        _ = trainer.callback_metrics[self.name]


class Prints(pl.Callback):
    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        print(f"{trainer.callback_metrics['val_loss']:.4f}")


class PrintsIt(pl.Callback):
    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        print(f"{trainer.callback_metrics['val_loss']:.4f}")


class PrintsWhatThereIs(pl.Callback):
    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        value = trainer.callback_metrics.get("val_loss", float("nan"))
        print(f"{value:.4f}")


class InBatches(pl.Callback):
    def on_train_batch_start(self, trainer: pl.Trainer, *given: Any) -> None:
        held = trainer.callback_metrics
        self.seen = held["train_loss"]


class OfTheModel(Net):
    def on_train_start(self) -> None:
        _ = self.trainer.callback_metrics["val_loss"]


def told(folder: Path, callback: Any = None, model: Any = None) -> str:
    given = [callback] if callback else []
    return fit(folder, model or Net(), *given, data=Data()).fix


def line(method: Any, more: int = 0, file: str = FILE) -> str:
    return f"({file}:{method.__code__.co_firstlineno + more})"


VALIDATES = f"val_loss is logged in validation_step {line(Net.validation_step, 1, OF_NET)}, and"
VALIDATES += " there was no validation but the sanity check so far: write"
pytestmark = pytest.mark.filterwarnings("ignore")


def test_what_a_validation_logs_is_told_with_the_hook_behind_it(tmp_path: Path) -> None:
    place = line(Prints.on_train_epoch_start)
    assert told(tmp_path, Prints()) == (
        f"{VALIDATES} on_validation_epoch_end for on_train_epoch_start {place}, or"
        ' trainer.callback_metrics.get("val_loss", float("nan"))'
    )
    place = line(OfTheModel.on_train_start)
    assert told(tmp_path, model=OfTheModel()) == (
        f"{VALIDATES} on_validation_epoch_end for on_train_start {place}, or"
        ' self.trainer.callback_metrics.get("val_loss", float("nan"))'
    )


@pytest.mark.parametrize("mended", [PrintsIt, PrintsWhatThereIs])
def test_what_is_told_runs_through(tmp_path: Path, mended: Any) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        told(tmp_path, mended())


def test_what_a_step_logs_is_told_in_front_of_the_first(tmp_path: Path) -> None:
    step = f"train_loss is logged in training_step {line(Net.training_step, 2, OF_NET)}, and there"
    step += " was no step so far: write"
    assert told(tmp_path, InBatches()) == f'{step} held.get("train_loss", float("nan"))'
    place = line(ReadsAtStart.on_train_epoch_start)
    assert told(tmp_path, ReadsAtStart("train_loss")).startswith(
        f"{step} on_train_epoch_end for on_train_epoch_start {place}, or trainer.callback_metrics."
    )


def test_another_name_is_told_with_those_of_the_model(tmp_path: Path) -> None:
    empty = "trainer.callback_metrics is empty there, as there was no step so far"
    assert told(tmp_path, ReadsAtStart("valloss")) == (
        f"{empty}, and the model logs train_loss, val_loss: did you mean 'val_loss'?"
    )
    assert told(tmp_path, ReadsAtStart("accuracy")) == (
        f"{empty}, and the model logs train_loss, val_loss"
    )
    assert told(tmp_path, ReadsAtStart("train_loss"), ByName()) == (
        f'{empty}: write trainer.callback_metrics.get("train_loss", float("nan"))'
    )


class OfAnyStage(Net):
    def training_step(self, batch: Any, index: int) -> Any:
        return self.any_step(batch, "train")

    def validation_step(self, batch: Any, index: int) -> None:
        self.any_step(batch, "val")

    def any_step(self, batch: Any, stage: str) -> Any:
        loss = self.layer(batch).mean()
        self.log(f"{stage}_mse", loss, on_step=False, on_epoch=True)
        self.log(f"{stage}_now", loss, on_step=stage == "train", on_epoch=stage == "val")
        return loss


class ReadsBehindBatches(ReadsAtStart):
    def on_train_epoch_start(self, *given: Any) -> None: ...

    def on_train_batch_end(self, trainer: Any, *given: Any) -> None:
        _ = trainer.callback_metrics[self.name]


class ReadsAtTheEnd(ReadsAtStart):
    def on_train_epoch_start(self, *given: Any) -> None: ...

    def on_train_epoch_end(self, trainer: Any, *given: Any) -> None:
        _ = trainer.callback_metrics[self.name]


def test_a_name_that_the_models_text_does_not_show_is_told_with_what_is_there(
    tmp_path: Path,
) -> None:
    """Names are made of the stage, in one method for all of them."""
    has = "trainer.callback_metrics has"
    assert told(tmp_path, ReadsBehindBatches("val_mse"), OfAnyStage()) == (
        f"{has} train_now there, as there was no validation but the sanity check so far: read it in"
        ' on_validation_epoch_end, or write trainer.callback_metrics.get("val_mse", float("nan"))'
    )
    every = f"{has} train_mse, train_now, val_mse, val_now there"
    assert told(tmp_path, ReadsAtTheEnd("val_accuracy"), OfAnyStage()) == every
    assert told(tmp_path, ReadsAtTheEnd("mse"), OfAnyStage()).startswith(f"{every}: did you mean")


def test_an_own_dict_is_told_otherwise() -> None:
    with pytest.raises(KeyError) as caught:
        _ = {"val_loss": 1}["train_loss"]
    assert "so far" not in fix_of(caught.value)
