"""Layers in a plain list of a model are noted before the queue: it trains without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.layer_notes import hidden_layer_notes, with_its_modules
from hpc_train.config.python_text.class_kind import locate
from tests.config.files import write

MODULES = "nn.ModuleList([...])"
NET = """\
import pytorch_lightning as pl
from torch import nn
from nets_of_others import Block

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 2)
        self.layers = MADE
    def forward(self, x):
        for number, layer in enumerate(self.layers): x = layer(x)
        return self.head(x)
"""


def notes(folder: Path, made: str) -> list[str]:
    write(folder, NET.replace("MADE", made), "nets.py")
    path = [str(folder)]
    found = locate("nets.Net", path)
    assert found is not None
    return list(hidden_layer_notes(with_its_modules("nets.Net", found, path), path))


@pytest.mark.parametrize(
    ("made", "kind", "holder"),
    [
        ("[nn.Linear(2, 2), nn.ReLU()]", "list", MODULES),
        ("[nn.Linear(2, 2) for _ in range(3)]", "list", MODULES),
        ("(nn.Conv2d(1, 2, 3),)", "tuple", MODULES),
        ('{"a": nn.Sequential(nn.Linear(2, 2))}', "dict", "nn.ModuleDict({...})"),
        ("[]\n        for _ in '12': self.layers.append(nn.Linear(2, 2))", "list", MODULES),
    ],
)
def test_a_plain_holder_of_layers_is_noted_with_its_line(
    tmp_path: Path, made: str, kind: str, holder: str
) -> None:
    assert notes(tmp_path, made) == [
        (
            f"nets.Net keeps layers in a plain {kind}, self.layers (nets.py:9), and none of them"
            f" would be trained: write {holder}"
        )
    ]


@pytest.mark.parametrize(
    "made",
    [
        "nn.ModuleList([nn.Linear(2, 2)])",
        "nn.Sequential(*[nn.Linear(2, 2)])",
        "[nn.ReLU(), nn.Dropout(0.1)]",
        "[nn.MSELoss()]",
        "[self.head]",
        "[Block()]",
        "[2, 3]",
        "[]; self.layers.append(nn.ReLU())",
        "nn.ModuleList(); self.layers.append(nn.Linear(2, 2))",
        "[nn.Linear(2, 2)]; self.layers = nn.ModuleList(self.layers)",
        "[nn.Linear(2, 2)]; self.body = nn.Sequential(*self.layers)",
        "[nn.Linear(2, 2)]; self.add_module('a', self.layers[0])",
        "[nn.Linear(2, 2)]; keep(self.layers)",
        "[nn.Linear(2, 2)]; self.more = [p for it in self.layers for p in it.parameters()]",
    ],
)
def test_what_is_registered_or_has_no_parameters_is_not(tmp_path: Path, made: str) -> None:
    assert notes(tmp_path, made) == []


OWN = """\
import torch
import pytorch_lightning as pl
from torch import nn
from blocks import Far, Plain

class Conv(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.ones(1))

class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = BODY

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Body(), nn.ReLU())
        self.again = Body()
        self.layers = MADE
"""
BLOCKS = """\
from torch import nn

class Far(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = Held()

class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()
"""


def notes_of_own(folder: Path, made: str, body: str = "None") -> list[str]:
    write(folder, BLOCKS, "blocks.py")
    write(folder, OWN.replace("MADE", made).replace("BODY", body), "nets.py")
    path = [str(folder)]
    found = locate("nets.Net", path)
    assert found is not None
    return list(hidden_layer_notes(with_its_modules("nets.Net", found, path), path))


@pytest.mark.parametrize(
    "made", ["[Conv(8) for _ in range(3)]", "[Conv(8)]", "[Scale()]", "(Far(), Plain())", "[Far()]"]
)
def test_modules_of_ones_own_are_layers_as_well(tmp_path: Path, made: str) -> None:
    (said,) = notes_of_own(tmp_path, made)
    assert "nets.Net keeps layers in a plain" in said
    assert "self.layers (nets.py:26)" in said


@pytest.mark.parametrize("made", ["[Plain()]", "nn.ModuleList([Conv(8)])", "[Absent()]", "[1]"])
def test_modules_without_parameters_are_not(tmp_path: Path, made: str) -> None:
    assert notes_of_own(tmp_path, made) == []


def test_a_part_of_the_model_is_told_once(tmp_path: Path) -> None:
    assert notes_of_own(tmp_path, "None", body="[Conv(8) for _ in range(3)]") == [
        (
            "nets.Body keeps layers in a plain list, self.layers (nets.py:19), and none of them"
            " would be trained: write nn.ModuleList([...])"
        )
    ]


def test_a_module_that_makes_itself_ends(tmp_path: Path) -> None:
    assert notes_of_own(tmp_path, "None", body="[Body()]") == []
