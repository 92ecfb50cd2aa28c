"""A script's test without data, or of the best of nothing: told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import write
from tests.config.test_script_starts import folder
from tests.config.test_script_trainer_calls import refusals

__all__ = ["folder"]

HEAD = """\
from pytorch_lightning import Trainer
from nets import Data, Few, Net, Own, Sub
t = Trainer(max_epochs=1)
"""
NETS = """\
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def __init__(self, lr=0.1): super().__init__()
    def training_step(self, batch, _): self.log("loss", 1.0)
class Own(Net): ...
def go(t): t.fit(Net(), Data())
class Sub(pl.LightningModule):
    def test_dataloader(self): return [1]
class Few(pl.LightningDataModule):
    def train_dataloader(self): return [1]
class Data(Few, pl.LightningDataModule):
    def test_dataloader(self): return [1]
    def predict_dataloader(self): return [1]
"""


def told(folder: Path, code: str, head: str = HEAD) -> list[str]:
    write(folder, NETS, "nets.py")
    write(folder, f"{head}{code}\n", "train.py")
    return refusals()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "t.fit(Net(lr=1), Data())\nt.test(Net(lr=1))",
            (
                "train.py:5 calls t.test without data, and Net(lr=1) has no test_dataloader"
                " -> write t.test(Net(lr=1), datamodule=Data())"
            ),
        ),
        (
            "net, d = 1, 2\nn = Net()\ndata = Data()\nt.fit(n, datamodule=data)\nt.test(n)",
            (
                "train.py:8 calls t.test without data, and n has no test_dataloader -> write"
                " t.test(n, datamodule=data)"
            ),
        ),
        (
            'n = Net()\nt.fit(n, Data())\nt.test(ckpt_path="best")',
            "-> write t.test(n, datamodule=Data(), ckpt_path='best')",
        ),
        ("t.fit(Net(), Few())\nt.test(Net())", "-> write t.test(Net(), dataloaders=DATALOADER)"),
        ("t.fit(Net(), [1])\nt.predict(model=Net())", "-> write t.predict(Net(), dataloaders=DATA"),
        ("t.validate(Net())", "calls t.validate without data, and Net() has no val_dataloader"),
        ("n = Net()\nt.fit(n, [1])\nt.test(test_dataloaders=[1])", "take -> write dataloaders=[1]"),
        ("t.test(Net(), [1])", ""),
        ("t.test(Net(), datamodule=Data())", ""),
        ("t.test(Net(), dataloaders=[1])", ""),
        ("t.test(Net(), **{'dataloaders': [1]})", ""),
        ("t.test(*[Net(), [1]])", ""),
        ("t.test(Sub())", ""),
        ("t.test(Own())", ""),
        ("n = Net()\nn.test_dataloader = lambda: [1]\nt.test(n)", ""),
        ("n = Net()\nn = Sub()\nt.test(n)", ""),
        ("if t.logger:\n    t.test(Net())", ""),
        ("try:\n    t.test(Net())\nexcept Exception:\n    pass", ""),
    ],
)
def test_a_call_without_data_is_told(folder: Path, code: str, said: str) -> None:
    found = told(folder, code)
    assert len(found) == bool(said), found
    assert not said or said in found[0]


@pytest.mark.parametrize("more", ["limit_test_batches=0", "overfit_batches=1", "**given"])
def test_a_trainer_that_may_take_no_batch_needs_no_data(folder: Path, more: str) -> None:
    head = HEAD.replace("max_epochs=1", more).replace("t =", "given = {}\nt =")
    assert told(folder, "t.test(Net())", head) == []


BEST = 't.test(Net(), Data(), ckpt_path="best")'


@pytest.mark.parametrize(
    ("code", "is_refused"),
    [
        (BEST, True),
        (f"def main():\n    {BEST}\nmain()", True),
        (BEST.replace("t.", "Trainer().", 1), False),  # of two Trainers either may have been fitted
        (f"t.fit(Net(), Data())\n{BEST}", False),
        (f"if t.logger:\n    t.fit(Net(), Data())\n{BEST}", False),
        (f"def train(one): one.fit(Net(), Data())\ntrain(t)\n{BEST}", False),
        (f"from nets import go\ngo(t)\n{BEST}", False),
        (f"t.checkpoint_callback.best_model_path = 'a'\n{BEST}", False),
        (BEST.replace('"best"', '"last"'), False),
        (BEST.replace('"best"', '"a.ckpt"'), False),
        ('t.test(datamodule=Data(), ckpt_path="best")', False),
    ],
)
def test_the_best_of_nothing_is_told(folder: Path, code: str, is_refused: bool) -> None:
    found = told(folder, code)
    assert len(found) == is_refused, found
    if is_refused:
        assert 'has test(..., ckpt_path="best"), and nothing is fitted before it' in found[0]
        assert "-> leave ckpt_path out, which takes the model as it is given" in found[0]
