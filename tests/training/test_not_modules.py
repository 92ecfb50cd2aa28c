"""Lists, functions and classes among layers, and a layer that is made where it was to be called."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hpc_train.training.failures.failure_words import fix_of

X = torch.zeros(2)
LAYER = nn.Linear(2, 2)
ACT: Any = nn.ReLU
HELD: Any = [LAYER]
OWN: Any = lambda x: x  # noqa: E731
relu: Any = functional.relu
SEQUENTIAL: Any = nn.Sequential


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: nn.Sequential([LAYER, LAYER]), ("nn.Sequential takes the layers one by one: write"  # type: ignore[arg-type]
         " nn.Sequential(*[...])")),
        (lambda: nn.Sequential(HELD), "one by one: write nn.Sequential(*HELD)"),
        (lambda: nn.Sequential(LAYER, functional.relu), ("functional.relu is a function: write"  # type: ignore[arg-type]
         " nn.ReLU() for it")),
        (lambda: nn.Sequential(LAYER, torch.relu), "torch.relu is a function: write nn.ReLU() for"),  # type: ignore[arg-type]
        (lambda: nn.ModuleList([LAYER, relu]), "relu is a function: write nn.ReLU() for it"),
        (lambda: nn.Sequential(LAYER, ACT), "ACT is a class: write ACT() for it"),
        (lambda: nn.Sequential(LAYER, functional.log_softmax), "write nn.LogSoftmax() for it"),  # type: ignore[arg-type]
        (lambda: nn.Sequential(LAYER, OWN), ""),
        (lambda: nn.Sequential(LAYER, 3), ""),  # type: ignore[arg-type]
        (lambda: LAYER(nn.ReLU(X)), ("nn.ReLU(X) makes a layer and does not call it: write"  # type: ignore[arg-type]
         " nn.ReLU()(X)")),
        (lambda: LAYER(ACT()), ""),
    ],
)  # fmt: skip
def test_what_to_write_for_it_is_told(call: Any, told: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    fix = fix_of(caught.value)
    assert told in fix
    assert bool(fix) is bool(told)


Y = torch.zeros(2)


@pytest.mark.filterwarnings("ignore:size_average")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: nn.CrossEntropyLoss(X, Y), "nn.CrossEntropyLoss()(X, Y)"),  # type: ignore[arg-type]
        (lambda: nn.L1Loss(X, Y, reduction="sum"), "nn.L1Loss(reduction='sum')(X, Y)"),  # type: ignore[arg-type]
        (lambda: nn.MSELoss(X), ""),  # type: ignore[arg-type]
        (lambda: X and Y, ""),
    ],
)
def test_a_loss_that_is_made_where_it_was_to_be_called_is_told(call: Any, told: str) -> None:
    try:
        call()
    except RuntimeError as error:
        fix = fix_of(error)
        assert fix.endswith(f"makes the loss and does not call it: write {told}" if told else "")
        assert bool(fix) is bool(told)
    else:
        assert not told
