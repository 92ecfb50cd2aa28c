"""Tensors of one line on two devices: which they are. torch's device "meta" stands for the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.failures.other_device import other_device

FILE = str(Path(__file__).relative_to(Path.cwd()))
X, Y = torch.zeros(4, 8, device="meta"), torch.zeros(4, dtype=torch.long, device="meta")


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4, device="meta")
        self.mean = torch.zeros(8)
        self.scale = torch.tensor(2.0)
        self.layers = [nn.Linear(8, 8), nn.Linear(8, 8)]
        self.heads = {"a": nn.Linear(8, 8)}
        self.pair = (nn.Linear(8, 8),)
        self.left = nn.Linear(8, 8)

    def inline(self, x: Any) -> Any:
        return x + torch.zeros(8)

    def named(self, x: Any) -> Any:
        noise = torch.randn(x.shape)
        return x + noise

    def twice(self, x: Any) -> Any:
        noise = torch.randn(x.shape)
        noise = noise * 2
        return x + noise

    def attribute(self, x: Any) -> Any:
        return x - self.mean

    def weighted(self, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(
            self.net(x),
            y,
            weight=torch.ones(4),
        )

    def listed(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def mapped(self, x: Any) -> Any:
        return self.heads["a"](x)

    def in_pair(self, x: Any) -> Any:
        layer = self.pair[0]
        return layer(x)

    def moved(self, x: Any) -> Any:
        return self.left(x)

    def scaled(self, x: Any) -> Any:
        return (x * self.scale) + self.mean

    def alike(self, x: Any) -> Any:
        return x @ x


def raised(call: Any, *given: Any) -> BaseException:
    with pytest.raises((RuntimeError, TypeError)) as caught:
        call(*given)
    return caught.value


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, it in enumerate(lines, 1) if it.strip() == text)


def test_a_new_tensor_is_told_with_its_device() -> None:
    told = fix_of(raised(Net().inline, X))
    assert told == (
        "torch.zeros(8) is on cpu and x on meta: write torch.zeros(8, device=self.device)"
    )


def test_a_name_is_told_with_the_line_that_makes_it() -> None:
    place = f"{FILE}:{line_of('noise = torch.randn(x.shape)')}"
    write = f"write torch.randn(x.shape, device=self.device) ({place})"
    assert fix_of(raised(Net().named, X)) == f"noise is on cpu and x on meta: {write}"


def test_a_name_that_is_given_more_than_once_is_moved() -> None:
    write = "write noise = noise.to(self.device) in front of it"
    assert fix_of(raised(Net().twice, X)) == f"noise is on cpu and x on meta: {write}"


def test_a_plain_attribute_becomes_a_buffer() -> None:
    place = f"{FILE}:{line_of('self.mean = torch.zeros(8)')}"
    write = f'write self.register_buffer("mean", torch.zeros(8)) ({place})'
    plain = "a plain attribute does not move with the model"
    assert (
        fix_of(raised(Net().attribute, X)) == f"self.mean is on cpu and x on meta: {plain}: {write}"
    )


def test_the_statement_may_have_more_lines() -> None:
    said = "torch.ones(4) is on cpu and self.net on meta"
    told = fix_of(raised(Net().weighted, X, Y))
    assert told == f"{said}: write torch.ones(4, device=self.device)"


PLAIN = "is a plain {}, which does not move with the model: write nn.ModuleList(...) for it"


@pytest.mark.parametrize(
    ("method", "write"),
    [
        ("listed", f"self.layers {PLAIN.format('list')}"),
        ("mapped", ""),  # an item of a dict is not looked up
        ("in_pair", f"self.pair {PLAIN.format('tuple')}"),
        ("moved", ""),  # by the time it is told all of Lightning's model is on the CPU
    ],
)
def test_a_layer_is_told_by_where_it_is_kept(method: str, write: str) -> None:
    told = fix_of(raised(getattr(Net(), method), X))
    assert told.rpartition("on meta: ")[2] == write


def test_a_part_of_the_model_counts_as_where_it_trained() -> None:
    """Lightning's tear-down has moved it to the CPU before the error is told."""
    net = Net()
    error = raised(net.weighted, X, Y)
    net.net = nn.Linear(8, 4)
    told = fix_of(error)
    assert told.startswith("torch.ones(4) is on cpu and self.net on meta: write")


def test_a_number_without_dimensions_is_not_meant() -> None:
    assert fix_of(raised(Net().scaled, X)).startswith("self.mean is on cpu and x on meta: ")


def test_what_is_not_told_by_names_is_left_to_torch() -> None:
    assert not other_device(raised(Net().alike, X))
    assert not other_device(RuntimeError("Expected all tensors to be on the same device"))


def test_a_batch_that_a_script_has_not_moved() -> None:
    model = nn.Linear(8, 4, device="meta")
    x, y = torch.zeros(4, 8), torch.zeros(4, dtype=torch.long)

    def first(device: Any) -> Any:
        return model(x)

    def whole(model: Any, x: Any, y: Any, device: Any) -> Any:
        return nn.functional.cross_entropy(model(x), y)

    assert fix_of(raised(whole, model, x, y, "meta")) == (
        "x and y are on cpu and model on meta: "
        "write x, y = x.to(device), y.to(device) in front of it"
    )
    assert fix_of(raised(first, "meta")).endswith("write x = x.to(device) in front of it")
    # A name of that kind for something else.
    assert fix_of(raised(first, 3)).endswith('write x = x.to("meta") in front of it')


def test_labels_that_a_script_has_not_moved() -> None:
    def step(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(x, y)

    told = fix_of(raised(step, X, torch.zeros(4, dtype=torch.long)))
    assert told == "y is on cpu and x on meta: write y = y.to(x.device) in front of it"


def test_a_function_of_numpy_for_a_tensor() -> None:
    x = torch.zeros(3)

    def mean() -> Any:
        return float(np.mean(x))

    def std(values: Any) -> Any:
        return np.std(values.detach())

    def other() -> Any:
        return x.mean(axes=2)  # type: ignore[call-overload]

    assert fix_of(raised(mean)) == "np.mean was given a tensor: write x.mean() of torch"
    told = fix_of(raised(std, x))
    assert told == "np.std was given a tensor: write values.detach().std() of torch"
    assert not fix_of(raised(other))
