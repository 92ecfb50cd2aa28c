"""An output of all time steps beside a target of one: the line to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from hpc_train.training.failures.failure_words import fix_of

X = torch.zeros(5, 7, 1)
Y = torch.zeros(5, 3)
ONE = torch.zeros(5, 1)


class Lstm(nn.Module):
    def __init__(self, *, batch_first: bool = True) -> None:
        super().__init__()
        self.rnn = nn.LSTM(1, 4, batch_first=batch_first)
        self.gru = nn.GRU(1, 4, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(4, 3)
        self.one = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        out, _ = self.rnn(x)
        return self.head(out)

    def named(self, x: Any) -> Any:
        x, _ = self.rnn(x)
        x = self.drop(x)
        return self.head(x)

    def by_index(self, x: Any) -> Any:
        out = self.gru(x)[0]
        return self.one(out)

    def used_twice(self, x: Any) -> Any:
        out, (h, _) = self.rnn(x)
        return self.head(out + h[-1].unsqueeze(1))


class Both(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def loss(self, x: Any, y: Any) -> Any:
        return mse_loss(self.net(x), y)

    def by_name(self, x: Any, y: Any) -> Any:
        y_hat = self.net(x)
        return nn.MSELoss()(y_hat, y)


NET = Lstm()


def told(call: Callable[[], object]) -> str:
    with pytest.raises(RuntimeError, match="must match the size") as caught:
        call()
    return fix_of(caught.value)


def line(method: Any, further: int) -> str:
    return f"test_time_steps.py:{method.__code__.co_firstlineno + further})"


@pytest.mark.parametrize(
    ("call", "said", "place"),
    [
        (
            lambda: mse_loss(NET(X), Y),
            (
                "NET(X) is [5, 7, 3] and Y is [5, 3]: each of 7 time steps of self.rnn is there:"
                " write self.head(out[:, -1]) ("
            ),
            line(Lstm.forward, 2),
        ),
        (
            lambda: mse_loss(NET.named(X), Y),
            (
                "NET.named(X) is [5, 7, 3] and Y is [5, 3]: each of 7 time steps of self.rnn is"
                " there: write self.drop(x[:, -1]) ("
            ),
            line(Lstm.named, 2),
        ),
        (
            lambda: mse_loss(NET.by_index(X), ONE),
            "each of 7 time steps of self.gru is there: write self.one(out[:, -1]) (",
            line(Lstm.by_index, 2),
        ),
        (
            lambda: Both(NET).loss(X, Y),
            "self.net(x) is [5, 7, 3] and y is [5, 3]: each of 7 time steps",
            line(Lstm.forward, 2),
        ),
        (
            lambda: Both(NET).by_name(X, Y),
            "y_hat is [5, 7, 3] and y is [5, 3]: each of 7 time steps",
            line(Lstm.forward, 2),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_all_time_steps_are_told_with_the_call_for_the_last(
    call: Callable[[], object], said: str, place: str
) -> None:
    words = told(call)
    assert said in words
    assert place in words


@pytest.mark.parametrize(
    "call",
    [
        lambda: mse_loss(Lstm(batch_first=False)(X), Y),  # whose last one is out[-1]
        lambda: mse_loss(NET.used_twice(X), Y),
        lambda: mse_loss(NET(X), Y[:4]),
        lambda: mse_loss(NET(X), torch.zeros(5, 9)),
        lambda: mse_loss(NET(X), torch.zeros(5, 6, 3)),  # of each step, one too few
        lambda: mse_loss(NET.head(torch.zeros(5, 7, 4)), Y),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_other_shapes_and_other_layers_are_told_no_time_step(call: Callable[[], object]) -> None:
    assert "time step" not in told(call)


def test_the_fix_fits() -> None:
    out, _ = NET.rnn(X)
    assert NET.head(out[:, -1]).shape == Y.shape
