"""Two callbacks of one class that keep a state under one name are refused, with state_key."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

NETS = """\
import pytorch_lightning as pl
import torch

class Net(pl.LightningModule):
    def training_step(self, batch): return self(batch)
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]

class Peak(pl.Callback):
    def __init__(self, every=5, name="x"):
        self.every, self.peak = every, 0.0
        self.called = name
STATE"""
STATE = "    def state_dict(self): return {'peak': self.peak}\n"
TWO = """\
trainer:
  accelerator: cpu
  callbacks:
  - class_path: nets.Peak
  - class_path: nets.Peak
    init_args: {every: 10}
"""
SAID = (
    "cfg.yaml:9: trainer.callbacks.1 is nets.Peak once more, as trainer.callbacks.0 (cfg.yaml:8):"
    " the states of both would be saved under one name, which Lightning refuses"
)
OWN = '@property, and below it def state_key(self): return f"Peak{self.%s}"'


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, state: str, more: str = TWO) -> str:
    monkeypatch.chdir(folder)
    write(folder, NETS.replace("STATE", state), "nets.py")
    try:
        api.load(write(folder, MINIMAL + more))
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return ""


def test_it_is_refused_with_both_lines_and_the_property(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = f"leave one of the two out, or write in the class (nets.py:11): {OWN % 'every'}"
    assert told(tmp_path, monkeypatch, STATE) == f"{SAID} -> {hint}"


def test_an_argument_that_is_not_kept_is_to_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = TWO.replace("every: 10", "name: b")
    keep = "keep self.name = name in __init__, and write in the class"
    said = told(tmp_path, monkeypatch, STATE, more)
    assert said.endswith(f"leave one of the two out, or {keep} (nets.py:11): {OWN % 'name'}")


def test_two_that_are_alike_are_one_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = TWO.replace("    init_args: {every: 10}\n", "")
    assert told(tmp_path, monkeypatch, STATE, more) == f"{SAID} -> leave one of the two out"


@pytest.mark.parametrize(
    ("state", "more"),
    [
        ("", TWO),
        (f"{STATE}    @property\n    def state_key(self): return str(self.every)\n", TWO),
        (STATE, TWO.replace("  - class_path: nets.Peak\n  -", "  -")),
        (
            (
                "class Base(pl.callbacks.EarlyStopping): ...\n\nclass Peak(Base):\n"
                f"    def __init__(self, every=5): super().__init__(monitor=str(every))\n{STATE}"
            ),
            TWO,
        ),
    ],
)
def test_states_that_are_none_or_have_names_of_their_own_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, more: str
) -> None:
    assert told(tmp_path, monkeypatch, state, more) == ""


OF_LIGHTNING = """\
trainer:
  accelerator: cpu
  callbacks:
  - class_path: %(package)s.callbacks.%(kind)s
    init_args: {%(first)s}
  - class_path: pytorch_lightning.callbacks.%(kind)s
    init_args: {%(second)s}
"""


@pytest.mark.parametrize(
    ("kind", "first", "second", "is_told"),
    [
        ("ModelCheckpoint", "monitor: loss, save_top_k: 1", "monitor: loss, save_top_k: 3", True),
        ("ModelCheckpoint", "filename: a", "mode: min, filename: b", True),
        ("ModelCheckpoint", "monitor: loss", "monitor: loss, every_n_epochs: 1", True),
        ("EarlyStopping", "monitor: loss, patience: 1", "monitor: loss, patience: 9", True),
        ("ModelCheckpoint", "monitor: loss", "monitor: loss, mode: max", False),
        ("ModelCheckpoint", "monitor: loss", "monitor: acc", False),
        ("ModelCheckpoint", "monitor: loss", "monitor: loss, every_n_epochs: 2", False),
        ("ModelCheckpoint", "monitor: loss", "monitor: loss, every_n_train_steps: 5", False),
        ("EarlyStopping", "monitor: loss", "monitor: acc", False),
        ("LearningRateMonitor", "", "", False),
    ],
)
def test_lightnings_own_are_told_by_what_their_names_are_made_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    first: str,
    second: str,
    is_told: bool,
) -> None:
    given = {"kind": kind, "first": first, "second": second, "package": "pytorch_lightning"}
    said = told(tmp_path, monkeypatch, "", OF_LIGHTNING % given)
    assert ("trainer.callbacks.1 is pytorch_lightning" in said) is is_told
    assert ("leave one of the two out" in said) is is_told
