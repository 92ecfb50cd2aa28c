"""Labels in the place of the logits, and values where save_hyperparameters takes names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.failures.swapped_loss import swapped_loss

Y, OUT = torch.zeros(4, dtype=torch.long), torch.zeros(4, 3)
PIXELS, MAPS = torch.zeros(2, 5, 5, dtype=torch.int), torch.zeros(2, 3, 5, 5)
LOSS = nn.CrossEntropyLoss()
SAID = "the labels stand in the place of the logits"


def told(call: Any) -> str:
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
        call()
    return swapped_loss(caught.value)


def by_keyword() -> None:
    F.cross_entropy(input=Y, target=OUT)


def by_function() -> None:
    F.cross_entropy(Y, OUT)


def by_module() -> None:
    LOSS(Y, OUT.exp())


def of_pixels() -> None:
    F.cross_entropy(PIXELS, MAPS)


@pytest.mark.parametrize(
    ("call", "write"),
    [
        (by_function, ": write F.cross_entropy(OUT, Y)"),
        (by_module, ": write LOSS(OUT.exp(), Y)"),
        (of_pixels, ": write F.cross_entropy(MAPS, PIXELS)"),
        (by_keyword, ": the logits come first, and the labels second"),
    ],
)
def test_the_call_is_told_the_other_way_round(call: Any, write: str) -> None:
    assert told(call) == f"{SAID}{write}"


def test_whole_numbers_that_are_no_labels_are_not_told_so() -> None:
    assert told(lambda: F.cross_entropy(OUT.long(), Y)) == ""
    assert told(lambda: F.softmax(Y, 0)) == ""
    assert told(lambda: F.cross_entropy(Y, Y)) == ""


class Saves(pl.LightningModule):
    def __init__(self, hidden: int = 3, lr: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters(hidden, lr)
        self.layer = nn.Linear(2, 1)

    def rate(self) -> Any:
        return self.hparams.lr  # type: ignore[attr-defined]


class Names(pl.LightningModule):
    def __init__(self, hidden: int = 3, lr: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters("hidden")

    def rate(self) -> Any:
        return self.hparams.lr  # type: ignore[attr-defined]


def test_values_that_are_saved_for_names_are_told_with_the_call() -> None:
    with pytest.raises(AttributeError) as caught:
        Saves().rate()
    line = Saves.__init__.__code__.co_firstlineno + 2
    place = f"{Path(__file__).relative_to(Path.cwd())}:{line}"
    assert fix_of(caught.value) == (
        f"self.save_hyperparameters(hidden, lr) ({place}) is given values, and takes names: write"
        ' self.save_hyperparameters(), for all, or self.save_hyperparameters("hidden", "lr")'
    )
    with pytest.raises(AttributeError) as caught:
        Names().rate()
    assert fix_of(caught.value) == "it has hidden"
