"""A loader of an evaluation that reads what no method of its data module sets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.fit.lacking_methods import check_evaluated
from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from hpc_train.plan.evaluations import NEEDED
from tests.config.test_lacking_methods import NET, project

STEPS = """\
    def test_step(self, batch, batch_idx): ...
    def validation_step(self, batch, batch_idx): ...
    def predict_step(self, batch, batch_idx): ...
"""
DATA = """\
class Data(LightningDataModule):
    def setup(self, stage=None):
        if stage == "fit":
            self.train, self.val = 1, 2
    def _loader(self, data): return [data]
    def train_dataloader(self): return self._loader(self.train)
    def val_dataloader(self): return self._loader(self.val)
    def test_dataloader(self): return self._loader(self.test)
    def predict_dataloader(self):
        data = self.later
        return [data]
"""
LINE = 2 + NET.count("\n") + STEPS.count("\n")


def told(folder: Path, verb: str, data: str = DATA, net: str = "") -> str:
    file = project(folder, NET % "pass" + STEPS + net, data)
    try:
        check_evaluated(load(file), NEEDED[verb], verb, [str(folder), *sys.path])
    except ConfigError as error:
        return f"{error.message} | {error.hint}"
    return ""


def test_what_no_method_sets_is_refused_before_a_job(tmp_path: Path) -> None:
    write = f"write self.%s = ..., the data set, in its setup (line {LINE + 1})"
    assert told(tmp_path, "test") == (
        f"nets.Data: its test_dataloader reads self.test (nets.py:{LINE + 7}), and no method of it"
        f" sets that | {write % 'test'}; or hpc-train validate RUN, for the validation data"
    )
    assert told(tmp_path, "predict") == (
        f"nets.Data: its predict_dataloader reads self.later (nets.py:{LINE + 9}), and no method of"
        f" it sets that | {write % 'later'}"
    )
    bare = DATA.replace("def setup(self, stage=None)", "def prepare_data(self)")
    assert "| write def setup(self, stage=None): self.test = ..., " in told(tmp_path, "test", bare)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.train, self.val = 1, 2", "self.train, self.val, self.test = 1, 2, 3"),
        ("    def setup", "    test = None\n    def setup"),
        ("self.train, self.val = 1, 2", "setattr(self, stage, 1)"),
        ("self.train, self.val = 1, 2", "self.__dict__.update(test=1)"),
        ("self.train, self.val = 1, 2", "fill(self)"),
        ("self.train, self.val = 1, 2", "self._put('test', 1)"),
        ("(LightningDataModule)", "(LightningDataModule, Made)"),
        ("self._loader(self.test)", "self._loader(self.test) if self.other else 0"),
        ("self._loader(self.test)", "self._loader(self.trainer)"),
        ("self._loader(self.test)", "self.train_dataloader()"),
    ],
)
def test_what_may_be_set_otherwise_is_left_to_the_job(tmp_path: Path, old: str, new: str) -> None:
    assert "sets that" not in told(tmp_path, "test", DATA.replace(old, new))


def test_what_the_model_may_set_is_left_to_the_job(tmp_path: Path) -> None:
    net = "    def on_test_start(self): self.trainer.datamodule.test = 3\n"
    assert told(tmp_path, "test", net=net) == ""
    assert told(tmp_path, "validate") == ""
