"""A pair of values and indices where one tensor was meant, and tensors that fit side by side."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hpc_train.training.failures.failure_words import fix_of

OUT: Any = torch.zeros(4, 3)
NEAR: Any = torch.zeros(4, 2)
Y: Any = torch.zeros(4)
PAIR: Any = torch.max(OUT, 1)
OWN: Any = SimpleNamespace(max=abs)
FEW: Any = torch.zeros(2, 2)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: torch.max(OUT, 1).float(),  # type: ignore[attr-defined]
            (
                "torch.max(OUT, 1) is a pair: write OUT.argmax(1) for the indices, or"
                " torch.max(OUT, 1).values"
            ),
        ),
        (lambda: OUT.max(dim=1).float(), "OUT.max(dim=1) is a pair: write OUT.argmax(dim=1) for"),
        (
            lambda: (torch.max(OUT, 1) == Y).float(),
            "torch.max(OUT, 1) is a pair: write OUT.argmax(",
        ),
        (lambda: (OUT.max(1) == Y).float().mean(), "OUT.max(1) is a pair: write OUT.argmax(1) for"),
        (lambda: OUT.topk(2, 1).float(), "OUT.topk(2, 1) is a pair: write OUT.topk(2, 1).indices"),
        (
            lambda: PAIR.float(),
            "PAIR is a pair: write PAIR.indices for the indices, or PAIR.values",
        ),
        (lambda: (PAIR == Y).float(), "PAIR is a pair: write PAIR.indices for the indices, or PAI"),
        (lambda: (OUT + 1).max(1).float(), "(OUT + 1).max(1) is a pair: write (OUT + 1).argmax(1)"),
        (lambda: torch.sort(Y).cpu(), "torch.sort(Y) is a pair: write Y.argsort()"),
        (lambda: torch.linalg.qr(OUT).float(), ""),  # type: ignore[attr-defined]
        (lambda: torch.max(OUT).append(1), ""),  # type: ignore[operator]
        (lambda: torch.relu(PAIR), "PAIR is a pair: write PAIR.indices for the indices, or PAIR.v"),
        (lambda: (OUT.max() == OUT.max().item()).mean().flot(), ""),
        (lambda: (1 == 2).float(), ""),
        (lambda: (OWN.max(1) == 2).float(), ""),
        (
            lambda: torch.cat([OUT, NEAR]),
            "all of them have 4 rows: write torch.cat([OUT, NEAR], dim=1) to put them side by side",
        ),
        (lambda: torch.cat((OUT, OUT[:, :2]), dim=0), "write torch.cat((OUT, OUT[:, :2]), dim=1)"),
        (lambda: torch.cat([OUT, FEW]), ""),
        (lambda: torch.cat([OUT, OUT[:2, :2]]), ""),
    ],
)
def test_what_to_write_for_it_is_told(call: Any, told: str) -> None:
    with pytest.raises((AttributeError, TypeError, RuntimeError)) as caught:
        call()
    fix = fix_of(caught.value)
    assert told in fix
    if not told:
        assert "pair" not in fix
        assert "side" not in fix
