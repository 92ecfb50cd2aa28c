"""A whole batch in the place of one of its tensors, told at the line that gives it."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import failure_of, user_frame

X, Y = torch.zeros(32, 16), torch.zeros(32)
Pair = namedtuple("Pair", ["img", "label"])
LIST = "a list of 2 tensors, [32, 16] and [32]"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 4))
        self.lstm = nn.LSTM(16, 4)

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        return self.layers(x) * scale

    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        return self(batch).mean()


class Flat(Net):
    def forward(self, x: Any) -> Any:  # type: ignore[override]
        return self.layers(x.view(x.size(0), -1))


class Layers(Net):
    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        return self.layers(input=batch)


class Shared(Net):
    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        return self.shared(batch)

    def shared(self, batch: Any) -> Any:
        image, _ = batch
        return self.forward(batch, scale=2.0) - image


class Conv(Net):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(32, 4, 3)

    def forward(self, x: Any) -> Any:  # type: ignore[override]
        return self.conv(x)


class Relu(Net):
    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        return torch.relu(batch)


class Inner(Net):
    """Its sample itself is of two tensors."""

    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        x, _ = batch
        return self(x)


class Recurrent(Net):
    def forward(self, x: Any) -> Any:  # type: ignore[override]
        out = self.lstm(x)
        return self.layers(out)

    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        x, _ = batch
        return self(x)


class Loop(Net):
    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        loader = [batch]
        for number, it in enumerate(loader):
            self(it, number)


def told(net: Any, batch: Any) -> tuple[str, int]:
    with pytest.raises((TypeError, AttributeError, RuntimeError)) as caught:
        net.training_step(batch)
    file, _, line = user_frame(caught.value).rpartition(":")
    assert file == __file__
    return fix_of(caught.value), int(line)


@pytest.mark.parametrize(
    ("net", "said"),
    [
        (Net(), f"self(batch) is given the whole batch, {LIST}: write x, y = batch and self(x)"),
        (Flat(), f"self(batch) is given the whole batch, {LIST}: write x, y = batch and self(x)"),
        (Layers(), f"{LIST}: write x, y = batch and self.layers(input=x)"),
        (
            Relu(),
            f"relu(batch) is given the whole batch, {LIST}: write x, y = batch and torch.r",
        ),
    ],
)
def test_a_whole_batch_is_told_at_the_step_that_gives_it(net: Any, said: str) -> None:
    fix, line = told(net, [X, Y])
    assert said in fix
    assert line == type(net).training_step.__code__.co_firstlineno + 1


def test_a_line_above_that_takes_it_apart_is_meant() -> None:
    fix, line = told(Shared(), [X, Y])
    assert fix.endswith("[32]: write self.forward(image, scale=2.0)")
    assert line == Shared.shared.__code__.co_firstlineno + 2


def test_what_a_loop_goes_through_is_a_whole_one() -> None:
    assert told(Loop(), [X, Y])[0].endswith("[32]: write x, y = it and self(x, number)")


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ([X], "batch, a list of 1 tensor, [32, 16]: write (x,) = batch and self(x)"),
        ((X, Y, Y), "a tuple of 3 tensors, [32, 16], [32] and [32]: write x, *_ = batch and"),
        ([X, "a"], "the whole batch, a list of 2 values: write x, y = batch and self(x)"),
        (Pair(X, Y), "a Pair of 2 tensors, [32, 16] and [32]: write self(batch.img)"),
        ({"x": X, "y": Y}, "the keys 'x', 'y': write self(batch[\"x\"]) or self(batch[\"y\"])"),
        ({"x": X}, "a dict with the key 'x': write self(batch[\"x\"])"),
    ],
)
def test_other_kinds_of_batches_are_told(batch: Any, said: str) -> None:
    assert said in told(Net(), batch)[0]


def test_a_recurrent_layers_pair_is_told_at_its_own_line() -> None:
    fix, line = told(Recurrent(), [X, Y])
    assert fix == "self.lstm(x), of an nn.LSTM, gives a pair: write out, _ = self.lstm(x)"
    assert line == Recurrent.forward.__code__.co_firstlineno + 1


def mean_of(losses: Any) -> Any:
    return torch.mean(losses)


def test_a_list_that_is_no_batch_is_left_to_others() -> None:
    with pytest.raises(TypeError) as caught:
        mean_of([X, Y, Y])
    assert not fix_of(caught.value)


def test_a_part_of_a_batch_and_other_errors_are_left_to_others() -> None:
    assert "whole" not in told(Inner(), [[X, X], Y])[0]
    assert "whole" not in told(Net(), [[X, Y], [X, Y]])[0]
    assert "whole batch" not in told(Net(), torch.zeros(32, 3))[0]
    assert "whole" not in told(Net(), None)[0]


@pytest.mark.parametrize("batch", [[X, Y], (X, Y)])
def test_a_convolution_says_it_in_other_words(batch: Any) -> None:
    with pytest.raises(TypeError, match="invalid combination") as caught:
        Conv().training_step(batch)
    kind = type(batch).__name__
    assert fix_of(caught.value) == (
        f"self(batch) is given the whole batch, a {kind} of 2 tensors, [32, 16] and [32]:"
        " write x, y = batch and self(x)"
    )
    said = failure_of(caught.value).error
    assert said.startswith(
        f"TypeError: conv1d() received an invalid combination of arguments - got ({kind},"
    )
    assert "expected one of" not in said


def test_another_invalid_combination_is_left_alone() -> None:
    with pytest.raises(TypeError, match="invalid combination") as caught:
        nn.functional.conv1d("x", X, Y)  # type: ignore[arg-type]
    assert "whole" not in fix_of(caught.value)
