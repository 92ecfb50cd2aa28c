"""Layers that a helper of the user's makes are followed to the plain list that they are kept in."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.layer_notes import hidden_layer_notes, with_its_modules
from hpc_train.config.python_text.class_kind import locate
from tests.config.files import write

NET = """\
import pytorch_lightning as pl
from torch import nn
import shapes
from shapes import far, far as near, plain

def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b), nn.ReLU())

def named(a, norm=True):
    layers = [nn.Conv2d(a, a, 3)]
    if norm:
        layers.append(nn.BatchNorm2d(a))
    made = nn.Sequential(*layers)
    made.apply(print)
    return made

def either(a):
    if a > 1:
        return nn.Conv2d(a, a, 3)
    return nn.Linear(a, a)

def listed(n):
    layers = []
    for _ in range(n):
        layers.append(block(1, 1))
    return layers

def by_name():
    return {"a": block(1, 1), "b": block(1, 1)}

def act():
    return nn.Sequential(nn.ReLU(), nn.Dropout(0.1))

def acts():
    layers = []
    layers.append(nn.ReLU())
    return nn.Sequential(*layers)

def perhaps(a):
    if a:
        return nn.Linear(a, a)
    return nn.Identity()

def teacher():
    net = block(1, 1)
    net.requires_grad_(False)
    return net

def kept(net, a):
    made = block(a, a)
    net.add_module("made", made)
    return made

def pairs(n):
    for _ in range(n):
        yield nn.Linear(n, n)

def again():
    return again()

class Net(pl.LightningModule):
    def __init__(self, layer=None):
        super().__init__()
        MADE

    def own(self, a):
        return block(a, a)

    def held(self, a):
        self.made = block(a, a)
        return self.made

    def forward(self, x):
        for number, layer in enumerate(self.downs):
            x = layer(x)
        return self.downs[0](x)
"""
SHAPES = """\
from torch import nn
from deeper import deep

def far(a):
    return deep(a)

def plain(a):
    return a + 1
"""
DEEPER = """\
import torch.nn as nn

class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)

def deep(a):
    return Held()
"""
LIST, DICT = ("list", "nn.ModuleList([...])"), ("dict", "nn.ModuleDict({...})")


def notes(folder: Path, made: str) -> list[str]:
    write(folder, DEEPER, "deeper.py")
    write(folder, SHAPES, "shapes.py")
    write(folder, NET.replace("MADE", made.replace("\n", "\n        ")), "nets.py")
    path = [str(folder)]
    found = locate("nets.Net", path)
    assert found is not None
    return list(hidden_layer_notes(with_its_modules("nets.Net", found, path), path))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("self.downs = [block(1, 8), block(8, 16)]", LIST),
        ("self.downs = [block(1, 8) for _ in range(3)]", LIST),
        ("self.downs: list[nn.Module] = [named(1)]", LIST),
        ("self.downs = (either(1),)", ("tuple", "nn.ModuleList([...])")),
        ('self.downs = {"a": block(1, 1)}', DICT),
        ("self.downs = {k: block(1, 1) for k in 'ab'}", DICT),
        ("self.downs = dict()\nfor k in 'ab': self.downs[k] = block(1, 1)", DICT),
        ("self.downs = []\nfor _ in '12': self.downs.append(block(1, 1))", LIST),
        ("self.downs = list()\nself.downs.extend([block(1, 1)])", LIST),
        ("self.downs = [far(1)]", LIST),
        ("self.downs = [near(1)]", LIST),
        ("self.downs = [shapes.far(1)]", LIST),
        ("self.downs = [self.own(1)]", LIST),
        ("self.downs = []\nmade = block(1, 1)\nself.downs.append(made)", LIST),
        ("self.downs = [block(1, 1) if layer else nn.Linear(1, 1)]", LIST),
        ("self.downs = listed(3)", ("list", "nn.ModuleList(listed(3))")),
        ("self.downs = by_name()", ("dict", "nn.ModuleDict(by_name())")),
        ("new = [block(1, 1)]\nself.downs = new", ("list", "nn.ModuleList(new)")),
        ("new = []\nnew.append(block(1, 1))\nself.downs = new", ("list", "nn.ModuleList(new)")),
        ("self.downs = [block(1, 1)]\nself.depth = len(self.downs)", LIST),
    ],
)
def test_a_plain_holder_of_what_a_helper_makes_is_noted(
    tmp_path: Path, made: str, said: tuple[str, str]
) -> None:
    (note,) = notes(tmp_path, made)
    lines = (tmp_path / "nets.py").read_text().splitlines()
    line = next(at for at, it in enumerate(lines, 1) if it.lstrip().startswith("self.downs"))
    assert note == (
        f"nets.Net keeps layers in a plain {said[0]}, self.downs (nets.py:{line}), and none of"
        f" them would be trained: write {said[1]}"
    )


@pytest.mark.parametrize(
    "made",
    [
        "self.downs = nn.ModuleList([block(1, 1)])",
        "self.downs = nn.Sequential(*listed(3))",
        "self.downs = [block(1, 1)]\nself.all = nn.ModuleList(self.downs)",
        "self.downs = [block(1, 1)]\nself.all = nn.ModuleList([it for it in self.downs])",
        "self.downs = [block(1, 1)]\nself.all = nn.ModuleList(self.downs + [block(1, 1)])",
        "self.downs = [block(1, 1)]\nself.all = nn.Sequential(*self.downs)",
        "self.downs = [block(1, 1)]\nself.all = nn.ModuleDict({'a': self.downs[0]})",
        "self.downs = [block(1, 1)]\nself.one, = self.downs",
        "self.downs = [block(1, 1)]\nself.one = self.downs[0]",
        "self.downs = [block(1, 1)]\nfor it in self.downs: self.add_module('a', it)",
        "self.downs = [block(1, 1)]\nself._modules['a'] = self.downs[0]",
        "self.downs = [block(1, 1)]\nself.more = [p for it in self.downs for p in it.parameters()]",
        "self.downs = [block(1, 1)]\nself.downs[0].requires_grad_(False)",
        "new = [block(1, 1)]\nself.net = nn.Sequential(*new)\nself.downs = new",
        "new = [block(1, 1)]\nself.one = new[0]\nself.downs = new",
        "one = block(1, 1)\nself.one = one\nself.downs = [one]",
        "self.downs = [act()]",
        "self.downs = [acts()]",
        "self.downs = [perhaps(1)]",
        "self.downs = [plain(1)]",
        "self.downs = [teacher()]",
        "self.downs = [kept(self, 1)]",
        "self.downs = [self.held(1)]",
        "self.downs = [layer(1)]",
        "self.downs = [again()]",
        "self.downs = list(pairs(2))",
        "self.downs = pairs(2)",
        "self.downs = by_name",
        "def block(a): return a\nself.downs = [block(1)]",
        "block = print\nself.downs = [block(1)]",
        "for it in [block(1, 1)]: it(1)\nself.downs = [it]",
        "new = []\nnew.append(nn.Sequential(*new))\nself.downs = new[1:]",
    ],
)
def test_what_is_registered_or_not_sure_is_not(tmp_path: Path, made: str) -> None:
    assert notes(tmp_path, made) == []
