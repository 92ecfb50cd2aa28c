"""A number of samples that is written into a shape, and a batch that has another one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hpc_train.training.failures.failure_words import fix_of

X: Any = torch.ones(50, 8)
IMAGES: Any = torch.ones(50, 1, 3, 3)
OWN: Any = SimpleNamespace(batch_size=32, x=X)
ROWS: Any = np.ones((50, 8))
SQUARE: Any = torch.ones(50, 3)

OTHER = "32 stands there as the batch, and this one has 50: write "


def through(x: Any) -> Any:
    return torch.relu(x).view(32, 8)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: X.view(32, 8), f"{OTHER}-1, 8 in place of 32, 8"),
        (lambda: X.reshape((32, 8)), f"{OTHER}-1, 8 in place of 32, 8"),
        (lambda: torch.reshape(X, (32, 2, 4)), f"{OTHER}-1, 2, 4 in place of 32, 2, 4"),
        (lambda: X.view(32, -1), f"{OTHER}X.size(0), -1 in place of 32, -1"),
        (lambda: OWN.x.view(OWN.batch_size, 8), "OWN.batch_size is 32 there, and this one has 50"),
        (lambda: ROWS.reshape(32, 8), f"{OTHER}-1, 8"),
        (lambda: through(X), f"{OTHER}-1, 8 in place of 32, 8"),
        (lambda: IMAGES.view(-1, 16), "IMAGES has the shape [50, 1, 3, 3], which is 9 for each of"),
        (lambda: X.view(X.size(0), 9), "X has the shape [50, 8], which is 8 for each of 50"),
        (lambda: SQUARE.view(32, 7), "SQUARE has the shape [50, 3], which is 3 for each of 50"),
        (lambda: through(torch.ones(7)), ""),
    ],
)
def test_the_number_of_another_batch_is_told_with_what_to_write(call: Any, told: str) -> None:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        call()
    fix = fix_of(caught.value)
    assert told in fix
    assert bool(fix) is bool(told)
