"""What a layer was given, where its shape does not fit: the layer, the shape and what to write."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of

IMAGES = torch.zeros(5, 1, 4, 6)


class Net(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Identity(), layer)

    def forward(self, x: Any) -> Any:
        return self.layers(x)


AT = f"(tests/training/test_unfit_input.py:{Net.__init__.__code__.co_firstlineno + 2})"


@pytest.mark.parametrize(
    ("layer", "shape", "told"),
    [
        (
            nn.Linear(24, 2),
            (5, 1, 4, 6),
            (
                f"self.layers[1] = nn.Linear(24, 2) {AT} is given the shape [5, 1, 4, 6], and 1 * 4"
                " * 6 = 24: write x.flatten(1), or nn.Flatten(), in front of it"
            ),
        ),
        (nn.Linear(24, 2), (5, 4, 6), "4 * 6 = 24: write x.flatten(1), or nn.Flatten(), in front"),
        (
            nn.Linear(8, 2),
            (5, 1, 4, 6),
            "= 24: write x.flatten(1) in front of it and nn.Linear(24, 2)",
        ),
        (
            nn.Linear(8, 2),
            (5, 4, 6),
            (
                "write x.flatten(1) in front of it and nn.Linear(24, 2), or nn.Linear(6, 2) for"
                " each of the 4 rows"
            ),
        ),
        (nn.Linear(8, 2), (5, 6), "write nn.Linear(6, 2), or give it 8 features a sample"),
        (nn.Linear(8, 2), (6,), "write nn.Linear(6, 2), or give it 8 features a sample"),
        (
            nn.Conv2d(1, 4, 3),
            (5, 28, 28),
            (
                f"self.layers[1] = nn.Conv2d(1, 4, ...) {AT} is given the shape [5, 28, 28],"
                " which torch takes for one sample of 5 channels: write x.unsqueeze(1) where the 5"
                " are samples without channels"
            ),
        ),
        (nn.Conv2d(3, 4, 3), (5, 28, 28), "write x.unsqueeze(1) and nn.Conv2d(1, 4, ...)"),
        (nn.Conv2d(3, 4, 3), (5, 28, 28, 3), "write x.permute(0, 3, 1, 2) in front of it"),
        (nn.Conv1d(3, 4, 3), (5, 28, 3), "write x.permute(0, 2, 1) in front of it"),
        (nn.Conv1d(1, 4, 3), (5, 28), "write x.unsqueeze(1)"),
        (nn.Conv2d(3, 4, 3), (5, 1, 28, 28), "write nn.Conv2d(1, 4, ...), or give it 3 channels"),
        (nn.BatchNorm2d(8), (5, 8), "nn.BatchNorm2d(8) (tests/"),
        (nn.BatchNorm2d(8), (5, 8), " is given the shape [5, 8]: write nn.BatchNorm1d(8)"),
        (nn.BatchNorm1d(8), (5, 8, 2, 2), " is given the shape [5, 8, 2, 2]: write nn.BatchNorm2d"),
        (nn.BatchNorm2d(8), (5, 3), ""),
        (nn.LSTM(8, 4), (5, 7, 3), "write nn.LSTM(3, 4, ...), or give it 8 features at the end"),
        (nn.GRU(8, 4), (5, 8, 3), "with the features in its middle: write x.transpose(1, 2) in"),
        (
            nn.MaxPool2d(2),
            (5, 8, 1, 1),
            (
                "is given the shape [5, 8, 1, 1], images of 1 x 1, which are too small for it:"
                " leave out a layer that halves them, or give larger ones"
            ),
        ),
        (nn.Conv2d(3, 4, 3), (28, 28, 3), ""),
        (nn.Conv2d(3, 4, 3), (28, 28), ""),
    ],
)
def test_a_shape_that_does_not_fit_is_told_with_what_to_write(
    layer: Any, shape: tuple[int, ...], told: str
) -> None:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        Net(layer)(torch.zeros(shape))
    fix = fix_of(caught.value)
    assert told in fix
    assert bool(fix) is bool(told)


class Viewed(Net):
    def forward(self, x: Any) -> Any:
        return self.layers(x).view(x.size(0), -1)


class ViewedAbove(Net):
    def forward(self, x: Any) -> Any:
        rows = self.layers(x)
        return rows.view(len(rows), -1)


@pytest.mark.parametrize(
    ("layer", "shape", "order"),
    [
        (nn.Conv2d(3, 4, 3), (5, 28, 28, 3), (0, 3, 1, 2)),
        (nn.Conv1d(3, 4, 3), (5, 28, 3), (0, 2, 1)),
    ],
)
def test_a_permuted_input_of_what_is_viewed_later_is_made_contiguous(
    layer: Any, shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    whole = f"write x.permute({', '.join(map(str, order))}).contiguous() in front of it"
    for model in (Viewed(layer), ViewedAbove(Net(layer))):
        with pytest.raises(RuntimeError) as caught:
            model(torch.zeros(shape))
        assert whole in fix_of(caught.value)
        model(torch.zeros(shape).permute(order).contiguous())  # runs through


def test_a_product_of_matrices_without_a_layer_is_left_to_others() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.mm(IMAGES[0, 0], IMAGES[0, 0])
    assert not fix_of(caught.value)


@pytest.mark.parametrize(
    ("layer", "given", "told"),
    [
        (
            nn.Linear(6, 2),
            torch.zeros(5, 6).long(),
            f"= nn.Linear(6, 2) {AT} takes float32 and is given int64: write x.float()",
        ),
        (
            nn.Linear(6, 2),
            torch.zeros(5, 6).double(),
            "given float64: write x.float() in front of it",
        ),
        (
            nn.Conv2d(1, 2, 3),
            torch.zeros(5, 1, 8, 8).byte(),
            "is given uint8: write x.float() in front of it, or x.float() / 255 of images, which",
        ),
        (nn.Linear(6, 2).double(), torch.zeros(5, 6), ""),
        (nn.Linear(6, 2), torch.zeros(5, 6).half(), ""),
    ],
)
def test_numbers_of_another_format_are_told_with_the_layer(
    layer: Any, given: torch.Tensor, told: str
) -> None:
    with pytest.raises(RuntimeError) as caught:
        Net(layer)(given)
    fix = fix_of(caught.value)
    assert told in fix
    assert bool(fix) is bool(told)
