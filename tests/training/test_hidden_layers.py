"""Layers in a plain list, tuple or dict, of which an optimizer gets no parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import nn

from tests.training.test_failure_words import Net, fit

pytestmark = pytest.mark.filterwarnings("ignore")


class Hides(pl.LightningModule):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.layers = held

    training_step, configure_optimizers = Net.training_step, Net.configure_optimizers  # type: ignore[assignment]


class Block(nn.Module):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.heads = held


class Outer(Hides):
    def __init__(self, held: Any) -> None:
        pl.LightningModule.__init__(self)
        self.block = Block(held)


LINE = Hides.__init__.__code__.co_firstlineno + 2
AT = f"self.layers (tests/training/test_hidden_layers.py:{LINE}) is a plain"


@pytest.mark.parametrize(
    ("model", "held", "told"),
    [
        (Hides, [nn.Linear(2, 1)], (f"{AT} list of modules, which torch passes over: write"
         " self.layers = nn.ModuleList([...])")),
        (Hides, (nn.Linear(2, 1), nn.ReLU()), f"{AT} tuple of modules"),
        (Hides, {"a": nn.Linear(2, 1)}, "write self.layers = nn.ModuleDict({...})"),
        (Hides, [nn.Parameter(torch.ones(2))], "write self.layers = nn.ParameterList([...])"),
        (Outer, [nn.Linear(2, 1)], "is a plain list of modules"),
        (Hides, [], ""),
        (Hides, [3, nn.Linear(2, 1)], ""),
        (Hides, nn.ReLU(), ""),
    ],
)  # fmt: skip
def test_the_attribute_that_hides_them_is_told_with_its_line(
    model: Any, held: Any, told: str, tmp_path: Path
) -> None:
    failure = fit(tmp_path, model(held))
    assert "empty parameter list" in failure.error
    assert told in failure.fix
    assert bool(failure.fix) is bool(told)


class Filters(Hides):
    def __init__(self) -> None:
        super().__init__([])
        self.layer = nn.Linear(2, 1).requires_grad_(False)
        self.layers = [self.layer]

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD([it for it in self.parameters() if it.requires_grad], lr=0.1)


def test_a_list_of_layers_that_torch_sees_is_not_told(tmp_path: Path) -> None:
    assert "plain list" not in fit(tmp_path, Filters()).fix


def test_a_filter_that_lets_none_through_is_told_with_what_froze_them(tmp_path: Path) -> None:
    line = Filters.__init__.__code__.co_firstlineno + 2
    frozen = f"all 2 parameters of Filters are frozen (tests/training/test_hidden_layers.py:{line})"
    write = "write self.layer.requires_grad_(True) behind that line, if that is to learn"
    assert fit(tmp_path, Filters()).fix == f"{frozen}: {write}"


def test_of_a_module_in_the_model_its_whole_name_is_told(tmp_path: Path) -> None:
    assert fit(tmp_path, Outer([nn.Linear(2, 1)])).fix.startswith("self.block.heads (tests/")
