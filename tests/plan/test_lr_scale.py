"""What a script's learning rates become with more ranks."""

from __future__ import annotations

import pytest

from hpc_train.plan.lr_scale import LrScale, lr_scale
from hpc_train.plan.plan import ScriptPlan


def script(how: str, lr_ranks: int) -> ScriptPlan:
    return ScriptPlan("x.py", [], scale_lr=how, lr_ranks=lr_ranks, warmup_steps=10)


@pytest.mark.parametrize(
    ("how", "lr_ranks", "ranks", "factor"),
    [("linear", 1, 12, 12), ("linear", 8, 4, 0.5), ("sqrt", 1, 16, 4), ("sqrt", 4, 8, 2**0.5)],
)
def test_the_factor_follows_from_the_ranks(
    how: str, lr_ranks: int, ranks: int, factor: float
) -> None:
    scale = lr_scale(script(how, lr_ranks), ranks)
    assert scale is not None
    assert scale.factor == pytest.approx(factor)
    assert [scale.at(step) for step in (9, 10, 10**6)] == pytest.approx([factor] * 3)
    assert scale.at(4) == pytest.approx((1 + factor) / 2), "half of the way"


@pytest.mark.parametrize(("how", "lr_ranks"), [("none", 1), ("linear", 4), ("sqrt", 4)])
def test_nothing_is_scaled_without_a_wish_or_without_a_difference(how: str, lr_ranks: int) -> None:
    assert lr_scale(script(how, lr_ranks), 4) is None
    assert LrScale(3.0, 0).at(0) == 3
