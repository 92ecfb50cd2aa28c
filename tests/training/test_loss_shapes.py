"""Losses, logits, labels and data of shapes that do not fit, told with the shapes at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from hpc_train.training.failures.failure_words import fix_of
from tests.training.test_failure_words import Net, fit

FILE = "tests/training/test_loss_shapes.py"
LABELS = torch.zeros(40).long()


class Mixes(Net):
    def forward(self, x: Any) -> Any:
        return self.layer(x.view(-1, 2))

    def training_step(self, batch: Any, index: int) -> Any:
        return self.loss(torch.cat([batch, batch], 1))

    def loss(self, x: Any) -> Any:
        return cross_entropy(self(x), LABELS)


class Twice(Mixes):
    def forward(self, x: Any) -> Any:
        return self.layer(x.reshape(-1, 1).reshape(-1, 2))


class Half(Mixes):
    def loss(self, x: Any) -> Any:
        return cross_entropy(self(x)[:30], LABELS)


class Flat(Mixes):
    def loss(self, x: Any) -> Any:
        return cross_entropy(self(x), LABELS.view(20, 2).repeat(1, 2))


class Many(Net):
    def training_step(self, batch: Any, index: int) -> Any:
        error = torch.nn.functional.mse_loss(self.layer(batch), batch[:, :1], reduction="none")
        self.seen = error.detach()
        return error


class Unfit(Mixes):
    def loss(self, x: Any) -> Any:
        return torch.nn.functional.smooth_l1_loss(x, LABELS)


class Apart(Mixes):
    def loss(self, x: Any) -> Any:
        return torch.nn.functional.smooth_l1_loss(*[x, LABELS])


class Column(Mixes):
    def loss(self, x: Any) -> Any:
        return torch.nn.MSELoss()(x.unsqueeze(2), x)


class ManyMade(Net):
    def training_step(self, batch: Any, index: int) -> Any:
        return {"loss": self.layer(batch)}


def line_of(method: Any, more: int = 0) -> int:
    return int(method.__code__.co_firstlineno) + more


@pytest.mark.filterwarnings("ignore")
def test_a_reshape_that_mixes_samples_is_told_with_its_line(tmp_path: Path) -> None:
    has = "the logits have the shape [80, 1] and the labels [40]"
    assert fit(tmp_path, Mixes()).fix == (
        f"{has}: x.view(-1, 2) ({FILE}:{line_of(Mixes.forward, 1)}) makes 2 rows of each"
        " sample: write x.view(x.size(0), -1)"
    )
    assert fit(tmp_path, Twice()).fix == has
    assert fit(tmp_path, Flat()).fix == (
        "the logits have the shape [80, 1] and the labels [20, 4]: give the labels as y.view(-1)"
    )
    assert fit(tmp_path, Half()).fix == "the logits have the shape [30, 1] and the labels [40]"


@pytest.mark.filterwarnings("ignore")
def test_a_loss_of_shapes_that_torch_cannot_broadcast_says_which_is_which(tmp_path: Path) -> None:
    assert fit(tmp_path, Unfit()).fix == (
        "x is [40, 4] and LABELS is [40]: of labels of classes write F.cross_entropy(x, LABELS)"
    )
    assert fit(tmp_path, Apart()).fix == "the input has the shape [40, 4] and the target [40]"
    assert fit(tmp_path, Column()).fix == (
        "the input has the shape [40, 4, 1] and the target [40, 4]: write x.unsqueeze(2).squeeze(2)"
    )


@pytest.mark.filterwarnings("ignore")
def test_a_loss_of_many_numbers_is_told_at_its_step(tmp_path: Path) -> None:
    told = fit(tmp_path, Many())
    line = line_of(Many.training_step)
    assert told.where == f"{__file__}:{line}"
    assert told.fix == (
        f'training_step returns a loss of shape [40, 1] (reduction="none" in line {line + 1}):'
        " return error.mean()"
    )
    told = fit(tmp_path, ManyMade())
    assert told.fix == "training_step returns a loss of shape [40, 1]: return its mean()"


def test_tensors_of_a_data_set_are_told_with_their_numbers_of_rows() -> None:
    with pytest.raises(AssertionError) as caught:
        TensorDataset(torch.zeros(3, 2), torch.zeros(4))
    assert fix_of(caught.value) == "the tensors have 3 and 4 rows: give the same samples of each"


def test_workers_that_are_kept_and_of_which_there_are_none_are_told() -> None:
    with pytest.raises(ValueError, match="persistent") as caught:
        torch.utils.data.DataLoader(LABELS, persistent_workers=True)  # type: ignore[arg-type]
    assert fix_of(caught.value) == (
        "leave persistent_workers=True out, or give num_workers of 1 or more"
    )
