"""A method without its parentheses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hpc_train.training.failures.failure_words import fix_of
from tests.training.test_failure_words import Net, fit

LOSS: Any = torch.ones(3)
NET: Any = Net()
optim: Any = torch.optim


def rate(epoch: int) -> float:
    return 0.5**epoch


ANY_RATE: Any = rate


class LogsItem(Net):
    def validation_step(self, batch: torch.Tensor, index: int) -> None: ...

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = super().training_step(batch, index)
        self.log("train_loss", torch.nn.functional.relu(loss).sum().item)  # type: ignore[arg-type]
        return loss


class LogsKept(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = super().training_step(batch, index)
        kept: Any = loss.detach
        self.log_dict({"train_loss": kept})
        return loss


@pytest.mark.filterwarnings("ignore")
def test_a_method_that_is_logged_is_told_with_its_parentheses(tmp_path: Path) -> None:
    assert fit(tmp_path, LogsItem()).fix == "item is not called there: write .item()"
    assert fit(tmp_path, LogsKept()).fix == (
        "kept is the method detach itself: call it where it is made, .detach()"
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: LOSS.mean + 1.0, "mean is not called there: write LOSS.mean()"),
        (lambda: LOSS.size[0], "size is a method: write LOSS.size(0)"),
        (lambda: LOSS.mean.backward(), "mean is not called there: write LOSS.mean()"),
        (lambda: LOSS.max > 1, "max is not called there: write LOSS.max()"),
        (lambda: float(LOSS.item), "item is not called there: write LOSS.item()"),
        (lambda: len(LOSS.tolist), "tolist is not called there: write LOSS.tolist()"),
        (lambda: optim.SGD(NET.parameters), "parameters is not called there: write NET.par"),
        (lambda: torch.relu(LOSS.view), "view is not called there: write LOSS.view(...)"),
        (lambda: torch.relu(NET.training_step), "write NET.training_step(...)"),
        (lambda: NET.layer.weight.mean * 2.0 + None, "write NET.layer.weight.mean()"),
        (lambda: ANY_RATE * 2.0, "ANY_RATE is a function: write ANY_RATE(...)"),
        (lambda: sum(NET.children), "children is not called there: write NET.children()"),
        (lambda: LOSS.mean + LOSS.max, ""),
        (lambda: LOSS.mean() + None, ""),
    ],
)
def test_a_method_that_is_used_itself_is_named(call: Callable[[], Any], told: str) -> None:
    with pytest.raises((TypeError, AttributeError, ValueError)) as caught:
        call()
    fix = fix_of(caught.value)
    assert told in fix
    assert bool(told) is bool(fix)
