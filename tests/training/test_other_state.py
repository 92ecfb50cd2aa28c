"""A recurrent layer that is given the state of another batch: whose it is, and what to write."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of

FILE = "tests/training/test_other_state.py"


class Keeps(nn.Module):
    def __init__(self, kind: Any = nn.LSTM, *, batch_first: bool = True) -> None:
        super().__init__()
        self.rnn = kind(2, 4, batch_first=batch_first)
        self.hidden: Any = None
        self.size = 4

    def forward(self, x: Any) -> Any:
        out, self.hidden = self.rnn(x, self.hidden)
        return out


class ByName(Keeps):
    def forward(self, x: Any) -> Any:
        h0 = torch.zeros(1, self.size, 4)
        out, _ = self.rnn(x, hx=(h0, h0))
        return out


class Layers(Keeps):
    def forward(self, x: Any) -> Any:
        return self.rnn(x, torch.zeros(2, len(x), 4))


def told(model: nn.Module, *samples: int) -> str:
    *others, last = samples
    for number in others:
        model(torch.zeros(number, 3, 2))
    with pytest.raises(RuntimeError) as caught:
        model(torch.zeros(last, 3, 2))
    return fix_of(caught.value)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_state_that_is_left_from_another_batch_is_told_with_the_call_to_write(kind: Any) -> None:
    line = Keeps.forward.__code__.co_firstlineno + 1
    assert told(Keeps(kind), 4, 4, 3) == (
        f"self.hidden ({FILE}:{line}) is left from a batch of 4 samples, and this batch has 3:"
        " write self.rnn(x) for self.rnn(x, self.hidden), which begins with zeros"
    )


def test_a_state_of_a_fixed_size_is_told() -> None:
    assert told(ByName(), 4, 3) == (
        "(h0, h0) is for 4 samples, and this batch has 3: write self.rnn(x) for"
        " self.rnn(x, hx=(h0, h0)), which begins with zeros"
    )


def test_an_input_whose_samples_come_first_is_told_with_the_argument_of_the_layer() -> None:
    line = Keeps.__init__.__code__.co_firstlineno + 2
    assert told(ByName(batch_first=False), 4) == (
        f"self.rnn = nn.LSTM(2, 4, ...) ({FILE}:{line}) takes [steps, samples, features] and is"
        " given [4, 3, 2]: write batch_first=True in it"
    )


def test_a_state_of_other_layers_is_left_to_others() -> None:
    assert told(Layers(nn.GRU), 4) == ""
