"""Layers in a plain list of a model are noted before the queue: it trains without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.class_kind import locate
from hpc_train.config.layer_notes import hidden_layer_notes
from tests.config.files import write

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
    return list(hidden_layer_notes("nets.Net", found, path))


@pytest.mark.parametrize(
    ("made", "kind", "holder"),
    [
        ("[nn.Linear(2, 2), nn.ReLU()]", "list", "nn.ModuleList([...])"),
        ("[nn.Linear(2, 2) for _ in range(3)]", "list", "nn.ModuleList([...])"),
        ("(nn.Conv2d(1, 2, 3),)", "tuple", "nn.ModuleList([...])"),
        ('{"a": nn.Sequential(nn.Linear(2, 2))}', "dict", "nn.ModuleDict({...})"),
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
        "[nn.Linear(2, 2)]; self.layers = nn.ModuleList(self.layers)",
        "[nn.Linear(2, 2)]; self.body = nn.Sequential(*self.layers)",
        "[nn.Linear(2, 2)]; self.add_module('a', self.layers[0])",
        "[nn.Linear(2, 2)]; keep(self.layers)",
        "[nn.Linear(2, 2)]; self.more = [p for it in self.layers for p in it.parameters()]",
    ],
)
def test_what_is_registered_or_has_no_parameters_is_not(tmp_path: Path, made: str) -> None:
    assert notes(tmp_path, made) == []
