"""`torch.max(x, 1)` in a tensor's place is told with the call that gives the indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from hpc_train.training.rank_failure import failure_of

OUT, Y = torch.ones(2, 3), torch.ones(2)
WRITE = "gives values and indices: write OUT.argmax({}) for the indices, or .values behind it"


def named() -> Any:
    preds = torch.max(OUT, 1)
    return preds.float()  # type: ignore[attr-defined]


def compared() -> Any:
    preds = OUT.min(1)
    return (preds == Y).float()  # type: ignore[attr-defined]


def given() -> Any:
    best = OUT.topk(1)
    return cross_entropy(OUT, best)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        (lambda: torch.max(OUT, 1).float(), f"torch.max(OUT, 1) {WRITE.format(1)}"),
        (lambda: torch.max(OUT, dim=1).float(), f"torch.max(OUT, dim=1) {WRITE.format('dim=1')}"),
        (lambda: (torch.max(OUT, 1) == Y).float(), f"torch.max(OUT, 1) {WRITE.format(1)}"),
        (lambda: (OUT.max(-1) == Y).float(), f"OUT.max(-1) {WRITE.format(-1)}"),
        (lambda: torch.sort(Y).cpu(), "torch.sort gives values and indices: take one of the two"),
        (named, "preds is values and indices (torch.max): write preds.indices, or preds.values"),
        (compared, "preds is values and indices (torch.min): write preds.indices, or preds.val"),
        (given, "best is values and indices (torch.topk): write best.indices, or best.values"),
    ],
)
def test_the_pair_is_told_with_what_to_write(line: Callable[[], Any], fix: str) -> None:
    with pytest.raises((AttributeError, TypeError)) as caught:
        line()
    assert failure_of(caught.value).fix.startswith(fix)


@pytest.mark.parametrize(
    "line",
    [
        lambda: (len(Y) == 3).float(),  # type: ignore[attr-defined]
        lambda: torch.max(OUT).append(1),  # type: ignore[operator]
        lambda: torch.linalg.qr(OUT).float(),  # type: ignore[attr-defined]
    ],
)
def test_of_other_results_nothing_is_said(line: Callable[[], Any]) -> None:
    with pytest.raises((AttributeError, TypeError)) as caught:
        line()
    assert "indices" not in failure_of(caught.value).fix
