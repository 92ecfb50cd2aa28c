"""A list that is kept over an epoch's steps: never made, or never filled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.rank_failure import failure_of

NAME = "tests.training.test_kept_lists"
FILE = str(Path(__file__).relative_to(Path.cwd()))


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []
        self.filled: list[Any] = []
        self.given: list[Any] = []

    def training_step(self, batch: Any, index: int) -> None:
        self.outs.append(batch)  # type: ignore[union-attr,operator]

    def validation_step(self, batch: Any, index: int) -> None:
        self.filled.append(batch)
        self.take(self.given)

    def take(self, given: list[Any]) -> None:
        given.append(1)

    def test_step(self, batch: Any, index: int) -> None:
        self.seen.add(batch)  # type: ignore[union-attr,operator]

    def on_validation_epoch_end(self) -> None:
        torch.stack(self.kept)

    def on_train_epoch_end(self) -> None:
        torch.cat(self.filled)

    def on_test_epoch_end(self) -> None:
        torch.cat(self.given)

    def on_predict_epoch_end(self) -> None:
        parts: list[Any] = []
        torch.cat(parts)


class Sets(Net):
    def on_fit_start(self) -> None:
        self.outs = []

    def on_train_start(self) -> None:
        self.outs = []


def fix_of(method: Any, *given: Any) -> str:
    with pytest.raises((AttributeError, RuntimeError, ValueError)) as caught:
        method(*given)
    return failure_of(caught.value).fix


@pytest.mark.parametrize(
    ("step", "made"), [("training_step", "self.outs = []"), ("test_step", "self.seen = set()")]
)
def test_a_list_that_no_line_makes_is_told_with_the_line_to_write(step: str, made: str) -> None:
    name = made.partition(" ")[0]
    said = f"no line of {NAME}.Net makes {name}: write {made} in __init__"
    assert fix_of(getattr(Net(), step), 1, 0) == f"{said}, behind super().__init__()"


def test_what_some_method_makes_is_not_told_so() -> None:
    assert "no line" not in fix_of(Sets().training_step, 1, 0)


def test_a_list_that_nothing_fills_is_told_with_the_step_that_has_to() -> None:
    line = Net.__init__.__code__.co_firstlineno + 2
    said = f"self.kept ({FILE}:{line}) is empty there, and nothing in {NAME}.Net fills it"
    fix = f"{said}: self.kept.append(...) in validation_step"
    assert fix_of(Net().on_validation_epoch_end) == fix


@pytest.mark.parametrize(
    ("hook", "name"),
    [("on_train_epoch_end", "self.filled"), ("on_test_epoch_end", "self.given")],
)
def test_of_one_that_some_line_may_fill_no_more_is_said(hook: str, name: str) -> None:
    said = fix_of(getattr(Net(), hook))
    assert said.startswith(f"{name} ({FILE}:")
    assert said.endswith(") is empty there")


def test_a_local_list_is_told_by_its_name() -> None:
    assert fix_of(Net().on_predict_epoch_end) == "parts is empty there"


def test_heads_that_do_not_divide_are_told_with_those_that_do() -> None:
    with pytest.raises(AssertionError) as caught:
        torch.nn.TransformerEncoderLayer(32, 5)
    said = "num_heads (nhead) is 5, and embed_dim (d_model) 32: write 4 or 8 heads"
    assert failure_of(caught.value).fix == f"{said}, or a multiple of 5 for it"
    with pytest.raises(AssertionError) as caught:
        torch.nn.MultiheadAttention(2, 3)
    assert "write 2 heads" in failure_of(caught.value).fix
