"""Two tensors of one operation that do not fit: which, of what shapes, and the layer to change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of

X = torch.zeros(32, 16)
OUT = torch.zeros(32, 4)
FEW = torch.zeros(8, 4)
ROWS = torch.zeros(32)
LABELS = torch.zeros(32, dtype=torch.long)
IMAGES = torch.zeros(32, 3, 8, 8)
BATCH = [X, OUT]
LOSS = nn.MSELoss()


class Net(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 8), nn.Linear(8, width))
        self.head = nn.Linear(16, 3)
        self.gate = nn.Sequential(nn.Linear(16, 4), nn.Sigmoid())

    def residual(self, x: Any) -> Any:
        return self.layers(x) + x

    def by_name(self, x: Any) -> Any:
        out = self.layers(x)
        out = out + x
        return out  # noqa: RET504 - as people write it

    def other_side(self, x: Any) -> Any:
        return x * self.head(x)

    def gated(self, x: Any) -> Any:
        return self.gate(x) * x

    def loss_of(self, x: Any) -> Any:
        return nn.functional.mse_loss(self.head(x), OUT)

    def unknown(self, x: Any) -> Any:
        return self.head(x) + self.layers(x)

    def in_place(self, x: Any) -> Any:
        x += self.layers(x)
        return x

    def rows(self, x: Any) -> Any:
        return self.layers(x) + FEW


LINEAR = Net.__init__.__code__.co_firstlineno + 2
HERE = "tests/training/test_unfit_operands.py"
AT = f"self.layers[1] = nn.Linear(8, 4) ({HERE}:{LINEAR})"
HEAD = f"self.head = nn.Linear(16, 3) ({HERE}:{LINEAR + 1})"


def told(call: Callable[[], Any]) -> str:
    with pytest.raises(RuntimeError, match="must match the size of tensor b") as caught:
        call()
    return fix_of(caught.value)


HAS = "has 4 at dimension 1, and x, [32, 16], has 16"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("residual", f"self.layers(x) {HAS}: write nn.Linear(8, 16) for {AT}, or leave + x out"),
        (
            "by_name",
            (
                "out is [32, 4] and x is [32, 16], dimension 1 differs: write nn.Linear(8, 16) for"
                f" {AT}, or leave + x out"
            ),
        ),
        (
            "other_side",
            (
                "self.head(x) has 3 at dimension 1, and x, [32, 16], has 16: write"
                f" nn.Linear(16, 16) for {HEAD}"
            ),
        ),
        ("gated", f"self.gate(x) {HAS}"),
        (
            "loss_of",
            (
                "self.head(x) is [32, 3] and OUT is [32, 4], dimension 1 differs: write"
                f" nn.Linear(16, 4) for {HEAD}"
            ),
        ),
        ("in_place", f"self.layers(x) {HAS}: write nn."),
        ("rows", "self.layers(x) has 32 at dimension 0, and FEW, [8, 4], has 8"),
        ("unknown", ""),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_what_a_layer_gives_is_told_beside_what_it_is_to_fit(name: str, said: str) -> None:
    fix = told(lambda: getattr(Net(), name)(X))
    assert fix.startswith(said)
    assert bool(fix) == bool(said)
    assert ("write" in fix) == ("write" in said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: OUT + FEW, "OUT is [32, 4] and FEW is [8, 4], dimension 0 differs"),
        (lambda: OUT - ROWS, "OUT is [32, 4] and ROWS is [32]"),
        (lambda: OUT == X, "OUT is [32, 4] and X is [32, 16], dimension 1 differs"),
        (
            lambda: BATCH[0] * BATCH[1],
            "BATCH[0] is [32, 16] and BATCH[1] is [32, 4], dimension 1 differs",
        ),
        (lambda: torch.add(OUT, X), "OUT is [32, 4] and X is [32, 16], dimension 1 differs"),
        (lambda: OUT.exp() / ROWS, "OUT.exp() has 4 at dimension 1, and ROWS, [32], has 32"),
        (lambda: IMAGES - OUT, "IMAGES is [32, 3, 8, 8] and OUT is [32, 4]"),
        (
            lambda: nn.functional.mse_loss(OUT, LABELS),
            (
                "OUT is [32, 4] and LABELS is [32]: of labels of classes write"
                " F.cross_entropy(OUT, LABELS)"
            ),
        ),
        (lambda: LOSS(OUT, LABELS), "OUT is [32, 4] and LABELS is [32]: of labels of classes wri"),
        (lambda: nn.functional.mse_loss(OUT, ROWS), "OUT is [32, 4] and ROWS is [32]"),
        (lambda: (OUT + X) + (OUT + OUT), "OUT is [32, 4] and X is [32, 16], dimension 1 differs"),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_both_shapes_are_told_where_both_are_known(call: Callable[[], Any], said: str) -> None:
    assert told(call).startswith(said)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tells no columns")
def test_of_a_line_with_several_the_one_that_failed_is_told() -> None:
    said = told(lambda: (OUT + X) * (OUT + X.T))
    assert said == "OUT is [32, 4] and X is [32, 16], dimension 1 differs"
