"""A model's forward that returns nothing, though its training_step works with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.fit.silent_forwards import SilentForward, silent_forward
from hpc_train.config.python_text.class_kind import locate

NET = """\
import torch, torch.nn.functional as F
from pytorch_lightning import LightningModule
class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = self.loss = torch.nn.Linear(8, 1)
    def forward(self, x):
        %s
    def training_step(self, batch, batch_idx):
        x, y = batch
        %s
        return out
"""
PLAIN = "self.net(x)"
LOSS = "out = F.cross_entropy(self(x), y)"


def found(folder: Path, forward: str = PLAIN, step: str = LOSS) -> SilentForward | None:
    (folder / "nets.py").write_text(NET % (forward, step))
    path = [str(folder), *sys.path]
    return silent_forward(locate("nets.Net", path), path)


def test_a_forward_without_return_is_told_with_both_lines(tmp_path: Path) -> None:
    assert found(tmp_path) == SilentForward(
        "has a forward (nets.py:7) that returns nothing, and training_step works with it"
        " (nets.py:11)",
        "write return in front of line 8",
        is_sure=True,
    )
    said = found(tmp_path, "out = self.net(x)")
    assert said is not None
    assert said.hint == "end it with: return out"


@pytest.mark.parametrize(
    "step",
    [
        "out = (self(x) - y).mean()",
        "out = self.forward(x).mean()",
        "p = self(x); out = F.mse_loss(p, y)",
        "out = self(x)[0]",
        "out = torch.sum(self(x))",
    ],
)
def test_what_fails_for_none_is_sure(tmp_path: Path, step: str) -> None:
    said = found(tmp_path, step=step)
    assert said is not None
    assert said.is_sure


@pytest.mark.parametrize("step", ["out = self.loss(self(x), y)", "out = keep(self(x))"])
def test_what_may_take_none_is_not_sure(tmp_path: Path, step: str) -> None:
    said = found(tmp_path, step=step)
    assert said is not None
    assert not said.is_sure


@pytest.mark.parametrize(
    ("forward", "step"),
    [
        ("return self.net(x)", LOSS),
        ("pass", LOSS),
        ("raise NotImplementedError", LOSS),
        ("yield self.net(x)", LOSS),
        ("self.net(x); return", LOSS),
        (PLAIN, "self(x); out = self.kept"),
        (PLAIN, "out = self(x)"),
        (PLAIN, "out = self.net(x).mean()"),
        (PLAIN, "p = self(x); p = self.kept; out = F.mse_loss(p, y)"),
        (PLAIN, "if y is None: out = F.mse_loss(self(x), y)"),
        (PLAIN, "self.__call__ = len; out = F.mse_loss(self(x), y)"),
    ],
)
def test_what_may_be_meant_is_not_told(tmp_path: Path, forward: str, step: str) -> None:
    assert found(tmp_path, forward, step) is None
