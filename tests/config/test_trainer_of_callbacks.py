"""Arguments of a ModelCheckpoint or an EarlyStopping that somebody wrote into `trainer`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check_training
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

SAVES = "class_path: pytorch_lightning.callbacks.ModelCheckpoint, init_args"
STOPS = "class_path: pytorch_lightning.callbacks.EarlyStopping, init_args"
OF_NONE = "is no argument of Lightning's Trainer"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


NETS = """\
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    pass
class Data(LightningDataModule):
    pass
"""


def told(folder: Path, trainer: str = "", *typed: str) -> ConfigError:
    """The refusal of a config with this `trainer`."""
    (folder / "nets.py").write_text(NETS)
    text = f"{MINIMAL}trainer: {{{trainer}}}\n"
    with pytest.raises(ConfigError) as caught:
        check_training(load(write(folder, text), list(typed)), workdir=folder)
    for it in (caught.value, *caught.value.others):
        it.message = it.message.replace(f"{folder}/", "")
    return caught.value


@pytest.mark.parametrize(
    ("keys", "said", "callback"),
    [
        ("save_top_k: 3", "save_top_k", f"{SAVES}: {{save_top_k: 3}}"),
        ("monitor: val_acc", "monitor", f"{SAVES}: {{monitor: val_acc}}"),
        (
            "monitor: val_acc, mode: max, max_epochs: 2, every_n_epochs: 1",
            "monitor, and mode, every_n_epochs are none",
            f"{SAVES}: {{monitor: val_acc, mode: max, every_n_epochs: 1}}",
        ),
        ("patience: 3", "patience", f"{STOPS}: {{monitor: val_loss, patience: 3}}"),
        (
            "patience: 3, monitor: val_acc, mode: max",
            "patience, and monitor, mode are none",
            f"{STOPS}: {{monitor: val_acc, patience: 3, mode: max}}",
        ),
        ("early_stopping: true", "early_stopping", f"{STOPS}: {{monitor: val_loss, patience: 3}}"),
    ],
)
def test_all_of_them_are_told_once_with_the_callback_to_write(
    tmp_path: Path, keys: str, said: str, callback: str
) -> None:
    error = told(tmp_path, keys)
    key, _, others = said.partition(", and ")
    more = f", and {others}" if others else ""
    assert error.message == f"cfg.yaml:5: trainer.{key} {OF_NONE}{more}"
    assert error.hint == f"write below trainer: callbacks: [{{{callback}}}]"
    assert error.others == ()


def test_those_of_both_callbacks_are_two_mends(tmp_path: Path) -> None:
    error = told(tmp_path, "patience: 3, save_last: true")
    messages = [error.message, *(it.message for it in error.others)]
    assert messages == [f"cfg.yaml:5: trainer.{it} {OF_NONE}" for it in ("patience", "save_last")]


def test_a_callback_that_is_there_keeps_its_monitor(tmp_path: Path) -> None:
    there = f"[{{{STOPS}: {{monitor: val_acc}}}}]"
    error = told(tmp_path, f"callbacks: {there}, patience: 2")
    assert error.hint == "write below trainer.callbacks.0.init_args: patience: 2"


def test_on_the_command_line_the_fix_is_the_word_to_type(tmp_path: Path) -> None:
    error = told(tmp_path, "", "trainer.save_top_k=3")
    assert error.message == f"command line: trainer.save_top_k {OF_NONE}"
    assert error.hint == f"write 'trainer.callbacks=[{{{SAVES}: {{save_top_k: 3}}}}]'"


def test_a_word_of_the_trainers_own_is_still_the_nearer_one(tmp_path: Path) -> None:
    error = told(tmp_path, "every_n_epochs: 2")
    assert "check_val_every_n_epoch" in error.hint
