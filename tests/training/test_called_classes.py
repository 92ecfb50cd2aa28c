"""A class of torch.nn in self that a step calls with tensors: where it is kept, what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import user_frame

X, Y = torch.zeros(4, 3), torch.zeros(4, dtype=torch.long)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cost = nn.CrossEntropyLoss
        self.act = nn.ReLU
        self.wide = nn.LayerNorm
        self.head = nn.Linear(3, 3)

    def cross(self) -> Any:
        return self.cost(X, Y)

    def logged(self) -> Any:
        cost: Any = self.cost(None, None)
        return cost.backward()

    def through(self) -> Any:
        h: Any = self.act(self.head(X))
        return self.head(h)

    def normed(self) -> Any:
        return self.wide(X).no_such

    def other(self) -> Any:
        return self.head(X[:, :2])


class Below(Net):
    pass


def failed(net: Net, method: str) -> BaseException:
    with pytest.raises((RuntimeError, TypeError, AttributeError)) as caught:
        getattr(net, method)()
    return caught.value


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("kind", [Net, Below])
@pytest.mark.parametrize(
    ("method", "name", "write"),
    [
        ("cross", "cost", "nn.CrossEntropyLoss()"),
        ("logged", "cost", "nn.CrossEntropyLoss()"),
        ("through", "act", "nn.ReLU()"),
        ("normed", "wide", "nn.LayerNorm(...)"),
    ],
)
def test_the_line_that_keeps_it_is_named(
    kind: type[Net], method: str, name: str, write: str
) -> None:
    error = failed(kind(), method)
    line = line_of(f"self.{name} = ")
    place = f"tests/training/test_called_classes.py:{line}"
    assert fix_of(error) == f"self.{name} ({place}) is the class itself: write {write} there"
    assert user_frame(error) == f"{__file__}:{line}"


def test_an_error_of_another_line_is_left_as_it_is() -> None:
    assert "class itself" not in fix_of(failed(Net(), "other"))
