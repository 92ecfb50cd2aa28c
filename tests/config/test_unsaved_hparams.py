"""`self.hparams.lr` of a class that saves no hyperparameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_several_optimizers import refusal

NETS = """\
import torch
from pytorch_lightning import LightningDataModule, LightningModule
class Base(LightningModule):
    pass
class Net(LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        self.a = torch.nn.Linear(1, 1)
    def training_step(self, batch, batch_idx):
        return self.a(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)
class Data(LightningDataModule):
    def __init__(self, folder="x"):
        super().__init__()
    def setup(self, stage=None):
        self.files = [1]
    def train_dataloader(self): return [torch.ones(2, 1)]
"""
CALL = "self.save_hyperparameters()"
SAID = f"and nothing calls {CALL}, by which hparams has the arguments of __init__ | write {CALL} in"


def test_a_model_that_asks_for_what_is_not_saved_is_refused(tmp_path: Path) -> None:
    where = f"{SAID} its __init__ (nets.py:6), behind super().__init__()"
    said = refusal(tmp_path, NETS)
    assert said == f"3: model.class_path: nets.Net asks self.hparams.lr (nets.py:12), {where}"
    below = NETS.replace("class Net(LightningModule)", "class Net(Base)")
    assert refusal(tmp_path, below) == said
    mended = NETS.replace(
        "super().__init__()\n        self.a", f"super().__init__(); {CALL}; self.a"
    )
    assert refusal(tmp_path, mended) == ""


def test_data_that_ask_for_what_is_not_saved_are_refused(tmp_path: Path) -> None:
    text = NETS.replace("lr=self.hparams.lr", "lr=0.1")
    assert refusal(tmp_path, text) == ""
    said = refusal(tmp_path, text.replace("[1]", "[self.hparams.folder]"))
    assert said.startswith("4: data.class_path: nets.Data asks self.hparams.folder (nets.py:17), ")
    assert SAID in said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lr=self.hparams.lr", "lr=self.hparams.get('lr', 0.1)"),
        ("lr=self.hparams.lr", "lr=self.hparams.lr if self.b else 0.1"),
        ("lr=self.hparams.lr", "lr=self.hparams.other"),
        ("self.a = ", "self.hparams['lr'] = lr; self.a = "),
        ("self.a = ", "self.hparams.update(lr=lr); self.a = "),
        ("self.a = ", "keep(self); self.a = "),
        ("self.a = ", "self.hparams.lr = lr; self.a = "),
        (
            "    def training_step",
            "    @property\n    def hparams(self): return 1\n    def training_step",
        ),
        ("class Net(LightningModule)", "class Net(Base, Other)"),
        ("    pass", "    def __init__(self):\n        self.save_hyperparameters()"),
    ],
)
def test_what_may_have_them_in_another_way_is_taken(tmp_path: Path, old: str, new: str) -> None:
    text = NETS.replace(old, new)
    text = (
        text.replace("class Net(LightningModule)", "class Net(Base)") if old == "    pass" else text
    )
    assert "hparams" not in refusal(tmp_path, text)
