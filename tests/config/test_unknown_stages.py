"""A stage of setup that Lightning never says is noted; its own, and one's own, are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import MINIMAL, write

NETS = """\
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def training_step(self, batch, index): return self(batch).sum()
    def configure_optimizers(self): return None
class Data(pl.LightningDataModule):
    def {head}:
        self.all = []
        {test}
            self.kept = []
    def train_dataloader(self): return [1]
"""
STAGES = 'and it is "fit", "validate", "test" or "predict"'


def notes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, test: str, head: str = "setup(self, stage=None)"
) -> list[str]:
    monkeypatch.chdir(folder)
    write(folder, NETS.format(head=head, test=test), "nets.py")
    return [it for it in api.load(write(folder, MINIMAL)).notes if "stage is" in it]


@pytest.mark.parametrize(
    ("test", "word", "fix"),
    [
        ('if stage == "train":', "train", ': write "fit"'),
        ('if stage in (None, "training"):', "training", ': write "fit"'),
        ('if stage is None or stage == "val":', "val", ': write "validate"'),
        ('if stage != "Test":', "Test", ': write "test"'),
        ('if self.all and stage == "inference":', "inference", ': write "predict"'),
        ('if stage == "other":', "other", ""),
    ],
)
def test_a_word_that_is_no_stage_is_noted_with_the_one_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, word: str, fix: str
) -> None:
    """What it guards was missed as the first batch was asked for."""
    said = f'nets.Data.setup asks whether the stage is "{word}" (nets.py:8), {STAGES}{fix}'
    assert notes(tmp_path, monkeypatch, test) == [said]


@pytest.mark.parametrize(
    "test",
    [
        'if stage == "fit":',
        'if stage in ("fit", None):',
        'if stage in ("fit", "train"):',
        'if stage == "train" or stage == "fit":',
        'if self.mode == "train":',
        'stage = "train"\n        if stage == "train":',
        'if stage == "once":\n            self.setup("once")\n        if self.all:',
        "if stage is None:",
        "if stage == self.all:",
    ],
)
def test_a_stage_that_may_be_is_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str
) -> None:
    assert notes(tmp_path, monkeypatch, test) == []


def test_another_method_and_another_argument_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = 'if stage == "train":'
    assert notes(tmp_path, monkeypatch, test, "prepare(self, stage)") == []
    word = 'if word == "train":'
    assert notes(tmp_path, monkeypatch, word, "setup(self, stage, word=1)") == []
    (told,) = notes(tmp_path, monkeypatch, test, "teardown(self, stage)")
    assert told.startswith("nets.Data.teardown asks")
