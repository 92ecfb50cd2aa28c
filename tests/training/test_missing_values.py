"""A call with too few values, or too many."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of

X: Any = torch.zeros(2)


class Masked(nn.Module):
    def __init__(self, width: Any = 3) -> None:
        super().__init__()

    def forward(self, x: Any, mask: Any, *, scale: Any = 1) -> Any:
        return self.helper(x) * mask * scale

    def helper(self, x: Any, *, shift: Any) -> Any:
        return x + shift

    @staticmethod
    def alone(x: Any, y: Any) -> Any:
        return x + y


class Needs(nn.Module):
    def __init__(self, width: Any, depth: Any) -> None:
        super().__init__()


NET: Any = Masked()
NEEDS: Any = Needs
NOTHING: Any = lambda: 3  # noqa: E731
LINEAR: Any = nn.Linear
LOSS: Any = nn.MSELoss()
GIVEN: Any = {"x": X}


class Trains(nn.Module):
    """As a LightningModule's configure_optimizers makes them."""

    def __init__(self) -> None:
        super().__init__()
        self.lr, self.layer = 0.1, nn.Linear(2, 2)

    def adam(self) -> Any:
        return torch.optim.Adam(lr=self.lr)  # type: ignore[call-arg]

    def sgd(self) -> Any:
        return torch.optim.SGD()  # type: ignore[call-arg]

    def steps(self) -> Any:
        chosen = torch.optim.SGD(self.parameters(), lr=self.lr)
        return torch.optim.lr_scheduler.StepLR(step_size=3), chosen  # type: ignore[call-arg]

    def either(self) -> Any:
        one, two = (torch.optim.SGD(self.parameters(), lr=self.lr) for _ in range(2))
        return torch.optim.lr_scheduler.StepLR(step_size=3), one, two  # type: ignore[call-arg]


def of_a_script() -> Any:
    net = nn.Linear(2, 2)
    return torch.optim.AdamW(weight_decay=0.1), net  # type: ignore[call-arg]


def line_of(function: Any) -> str:
    return f"(tests/training/test_missing_values.py:{function.__code__.co_firstlineno})"


FORWARD = f"def forward(self, x, mask, *, scale=...) {line_of(Masked.forward)}"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: NET(X),
            (f"{FORWARD} needs mask, and NET(X) does not give it: write NET(X, mask), or mask=None"
            " in the def where it may be left out"),
        ),
        (lambda: NET(x=X), "write NET(x=X, mask=mask), or"),
        (lambda: NET(), f"{FORWARD} needs x, mask, and NET() does not give them: write NET(x, mas"),
        (lambda: NET(X, X), ("needs shift, and self.helper(x) does not give it: write self.helper("
                            "x, shift=shift), or")),
        (lambda: NET.alone(X), f"def alone(x, y) {line_of(Masked.alone)} needs y, and NET.alone"),
        (lambda: NEEDS(3), f"def __init__(self, width, depth) {line_of(Needs.__init__)} needs dep"),
        (lambda: NET(X, X, X), f"{FORWARD} takes x, mask by place, and NET(X, X, X) gives 3 val"),
        (lambda: NOTHING(3), "takes nothing by place, and NOTHING(3) gives 1 value"),
        (lambda: NET(*[X]), ""),
        (lambda: NET(**GIVEN), ""),
        (lambda: LINEAR(3), ("LINEAR needs out_features, and LINEAR(3) does not give it: write"
                            " LINEAR(3, out_features)")),
        (lambda: LOSS(X), "LOSS needs target, and LOSS(X) does not give it: write LOSS(X, target)"),
        (lambda: LINEAR(3, 3, True, None, None, 1), "LINEAR takes in_features, out_features, bi"),
        (lambda: [LINEAR(3), LINEAR(3, 4)], "write LINEAR(3, out_features)"),
        (lambda: [NET.alone(X, X), NET.alone(X, X, X)], "and NET.alone(X, X, X) gives 3 values"),
        (lambda: [LINEAR(3), LINEAR(4)], ""),
        (lambda: X.add(), ""),
        (Trains().adam, "give it: write torch.optim.Adam(self.parameters(), lr=self.lr)"),
        (Trains().sgd, "write torch.optim.SGD(self.parameters())"),
        (Trains().steps, "torch.optim.lr_scheduler.StepLR(chosen, step_size=3)"),
        (Trains().either, "StepLR(step_size=3, optimizer=optim"),
        (of_a_script, "write torch.optim.AdamW(net.parameters(), weight_decay=0.1)"),
        (lambda: {"f": NET.alone}["f"](X), ""),
    ],
)  # fmt: skip
def test_the_def_is_told_with_what_it_needs(call: Any, told: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    fix = fix_of(caught.value)
    assert told in fix
    assert bool(fix) is bool(told)
