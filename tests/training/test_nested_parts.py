"""Batches with groups of tensors in them, as two views beside a label: what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of

V, Y = torch.zeros(4, 3), torch.zeros(4).long()
LINEAR, CONV = nn.Linear(3, 2), nn.Conv2d(3, 2, 1)
FLAT = nn.Sequential(nn.Flatten(), LINEAR)


def two(batch: Any) -> Any:
    a, b = batch
    return a, b


def three(batch: Any) -> Any:
    v1, v2, _ = batch
    return v1, v2


def four(batch: Any) -> Any:
    a, b, c, d = batch
    return a, b, c, d


def five(batch: Any) -> Any:
    a, b, c, y, index = batch
    return a, b, c, y, index


def views(batch: Any) -> Any:
    v1, v2 = batch
    return LINEAR(v1), LINEAR(v2)


def labelled(batch: Any) -> Any:
    x, y = batch
    return nn.functional.cross_entropy(CONV(x), y)


def flat(batch: Any) -> Any:
    x, label, _ = batch
    return FLAT(x), label


def second(batch: Any) -> Any:
    y, pair = batch
    return y, LINEAR(pair)


def whole(batch: Any) -> Any:
    return LINEAR(batch)


@pytest.mark.parametrize(
    ("call", "batch", "told"),
    [
        (
            three,
            [[V, V], Y],
            (
                "batch is a list of 2 parts (a list of 2 tensors, a tensor of shape [4]): write"
                " (v1, v2), _ = batch"
            ),
        ),
        (three, (Y, (V, V)), "(a tensor of shape [4], a tuple of 2 tensors): write v1, (v2, _) ="),
        (four, [[V, V], [V, V]], ": write (a, b), (c, d) = batch"),
        (four, [[V, V, V], Y], ": write (a, b, c), d = batch"),
        (five, [[V, V, V], Y, Y], ": write (a, b, c), y, index = batch"),
        (two, [[V, V]], "batch is a list of 1 part (a list of 2 tensors): write a, b = batch[0]"),
        (three, [[V, V], [V, V]], ": write v1, v2 = batch"),
        (three, [[1, 2], Y], "(list, a tensor of shape [4]): write v1, v2 = batch"),
        (views, [[V, V], Y], "v1 is a list of 2 tensors: write (v1, v2), _ = batch"),
        (labelled, [[V, V], Y], "x is a list of 2 tensors: write (x1, x2), y = batch"),
        (flat, [(V, V), Y, Y], "x is a tuple of 2 tensors: write (x1, x2), label, _ = batch"),
        (second, [Y, [V, V, V]], "pair is a list of 3 tensors: write y, (pair1, pair2, pair3) ="),
        (whole, [V, Y], "write x, y = batch and LINEAR(x)"),
    ],
)
def test_a_group_in_a_batch_is_told_with_the_names_that_take_it(
    call: Callable[[Any], Any], batch: Any, told: str
) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
        call(batch)
    assert told in fix_of(caught.value)
