"""A loss that takes logits and is given probabilities is noted before the queue: nothing fails."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.fit.twice_normalized import (
    twice_normalized_of_class,
    twice_normalized_of_script,
)
from hpc_train.config.python_text.class_kind import locate
from hpc_train.config.python_text.modules import read_names
from tests.config.files import MINIMAL, write

NET = """\
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.loss = nn.CrossEntropyLoss()
        MADE
    def forward(self, x):
        FORWARD
    def training_step(self, batch, _):
        x, y = batch
        STEP
"""
SOFTMAX = "leave the softmax out there, and apply it where you want probabilities"


def notes(
    folder: Path, made: str = "pass", forward: str = "return self.layer(x)", step: str = ""
) -> list[str]:
    text = NET.replace("MADE", made).replace("FORWARD", forward).replace("STEP", step)
    write(folder, text, "nets.py")
    path = [str(folder)]
    found = locate("nets.Net", path)
    assert found is not None
    return list(twice_normalized_of_class(found, path))


IN_FORWARD = "return F.cross_entropy(self(x), y)"


@pytest.mark.parametrize(
    ("changed", "line", "at"),
    [
        ({"forward": "return torch.softmax(self.layer(x), 1)", "step": IN_FORWARD}, 16, 13),
        ({"forward": "return F.softmax(self.layer(x), dim=-1)", "step": IN_FORWARD}, 16, 13),
        ({"forward": "return self.layer(x).softmax(1)", "step": IN_FORWARD}, 16, 13),
        ({"forward": "return nn.Softmax(dim=1)(self.layer(x))", "step": IN_FORWARD}, 16, 13),
        (
            {
                "forward": "x = self.layer(x)\n        x = F.softmax(x, 1)\n        return x",
                "step": "out = self.forward(x)\n        return self.loss(out, y)",
            },
            19,
            14,
        ),
        (
            {
                "made": "self.net = nn.Sequential(self.layer, nn.ReLU(), nn.Softmax(dim=1))",
                "forward": "return self.net(x)",
                "step": "return self.loss(input=self(x), target=y)",
            },
            16,
            11,
        ),
        (
            {
                "made": "self.softmax = nn.Softmax(dim=1)",
                "step": "p = self.softmax(self(x)).squeeze(1)\n        return self.loss(p, y)",
            },
            17,
            11,
        ),
        ({"step": "return nn.CrossEntropyLoss()(self.layer(x).softmax(1), y)"}, 16, 16),
    ],
)
def test_a_softmax_in_front_of_cross_entropy_is_noted_with_both_lines(
    tmp_path: Path, changed: dict[str, str], line: int, at: int
) -> None:
    (said,) = notes(tmp_path, **changed)
    loss = "cross_entropy" if "F.cross_entropy" in changed["step"] else "CrossEntropyLoss"
    assert said == (
        f"nets.py:{line} gives {loss} what a softmax has made (nets.py:{at}), and it applies"
        f" log_softmax itself, so that little is learned: {SOFTMAX}"
    )


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (
            "return F.binary_cross_entropy_with_logits(torch.sigmoid(self(x)), y)",
            (
                "what a sigmoid has made (nets.py:16), and it applies the sigmoid itself, so that"
                " little is learned: leave the sigmoid out there"
            ),
        ),
        (
            "return F.nll_loss(F.softmax(self(x), 1), y)",
            (
                "gives nll_loss what a softmax has made (nets.py:16), and it takes"
                " log-probabilities, so that little is learned: write log_softmax there"
            ),
        ),
    ],
)
def test_a_sigmoid_and_nll_loss_as_well(tmp_path: Path, step: str, says: str) -> None:
    (said,) = notes(tmp_path, step=step)
    assert says in said


@pytest.mark.parametrize(
    "changed",
    [
        {"step": IN_FORWARD},
        {"step": "return F.cross_entropy(F.log_softmax(self(x), 1), y)"},  # the same as without
        {"step": "return F.nll_loss(F.log_softmax(self(x), 1), y)"},
        {"step": "return F.binary_cross_entropy(torch.sigmoid(self(x)), y)"},
        {"step": "return F.cross_entropy(self(x), F.softmax(y, 1))"},  # a teacher's
        {"step": "return F.cross_entropy(self(x) * self(x).softmax(1), y)"},
        {"forward": "x = self.layer(x)\n        return x if self.training else x.softmax(1)"},
        {
            "forward": (
                "x = self.layer(x)\n        if not self.training:\n            x = x.softmax(1)\n"
                "        return x"
            )
        },
        {
            "forward": (
                "if self.training:\n            return self.layer(x)\n"
                "        return self.layer(x).softmax(1)"
            )
        },
        {"forward": "x = x.softmax(1)\n        x = self.layer(x)\n        return x"},
        {"made": "self.net = nn.Sequential(nn.Softmax(1), self.layer)", "forward": "self.net(x)"},
        {
            "made": "self.loss = nn.BCELoss()",
            "step": "return self.loss(torch.sigmoid(self(x)), y)",
        },
        {
            "made": "self.head = nn.Softmax(1)\n        self.head = nn.Identity()",
            "forward": "self.head(x)",
        },
        {
            "step": (
                "out = self(x)\n        loss = self.loss(out, y)\n        out = out.softmax(1)\n"
                "        return loss"
            )
        },
        {"step": "for x, y in batch:\n            p = self(x)\n        return self.loss(p, y)"},
    ],
)
def test_logits_are_said_nothing_of(tmp_path: Path, changed: dict[str, str]) -> None:
    forward = changed.get("forward", "return self.layer(x)")
    forward = forward if "return" in forward else f"return {forward}"
    assert notes(tmp_path, **{"step": IN_FORWARD, **changed, "forward": forward}) == []


SCRIPT = """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
HEAD

def train(model, loader, criterion):
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        loss.backward()

MODEL
criterion = nn.CrossEntropyLoss()
train(model, [], criterion)
"""
CLASS = """\
class Net(nn.Module):
    def forward(self, x):
        return self.layer(x).softmax(1)
"""


@pytest.mark.parametrize(
    ("head", "model", "at"),
    [
        (CLASS, "model = Net()", "train.py:6"),
        (CLASS, "model = Net().to('cpu')\nmodel = DDP(model)", "train.py:6"),
        (CLASS, "net = Net()\nmodel = torch.compile(net)", "train.py:6"),
        ("", "model = nn.Sequential(nn.Linear(2, 2), nn.Softmax(dim=1))", "train.py:12"),
        ("from mynets import Net", "model = Net()", "mynets.py:4"),
        ("import mynets", "model = mynets.Net()", "mynets.py:4"),
        (CLASS.replace(".softmax(1)", ""), "model = Net()", ""),
        (CLASS, "model = Net()\nmodel = nn.Identity()", ""),
        ("from others import Net", "model = Net()", ""),
    ],
)
def test_a_plain_script_and_a_module_of_its_own_as_well(
    tmp_path: Path, head: str, model: str, at: str
) -> None:
    text = SCRIPT.replace("HEAD", head).replace("MODEL", model)
    write(tmp_path, text, "train.py")
    write(tmp_path, f"from torch import nn\n{CLASS}", "mynets.py")
    names = read_names(tmp_path / "train.py")
    said = list(twice_normalized_of_script(ast.parse(text), names, "train.py", [str(tmp_path)]))
    assert [f"a softmax has made ({at})" in it for it in said] == ([True] if at else [])


OPTIMIZER = """\
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
    def training_step"""
DATA = """
class Data(pl.LightningDataModule):
    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=8)
"""


def test_both_are_noted_where_a_training_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, SCRIPT.replace("HEAD", CLASS).replace("MODEL", "model = Net()"), "train.py")
    net = NET.replace("MADE", "pass").replace("FORWARD", "return self.layer(x)")
    net = net.replace("STEP", "return self.loss(self(x).softmax(1), y)")
    write(tmp_path, net.replace("    def training_step", OPTIMIZER) + DATA, "nets.py")
    write(tmp_path, MINIMAL, "cfg.yaml")
    for name, line in (("train.py", 12), ("cfg.yaml", 18)):
        noted = [it for it in api.load(name).notes if SOFTMAX in it]
        assert [it.partition(" ")[0].rpartition(":")[2] for it in noted] == [str(line)]
