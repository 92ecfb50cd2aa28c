"""self.trainer.max_steps in a schedule, where the config gives none."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from hpc_train.config.fit.unset_max_steps import unset_max_steps
from hpc_train.training.failures.failure_words import fix_of

TEXT = "class Net:\n    def configure_optimizers(self):\n        {}\n"
ONE = "return OneCycleLR(o, 0.1, total_steps=self.trainer.max_steps)"


def line(text: str, **trainer: Any) -> int:
    (definition,) = ast.parse(TEXT.format(text)).body
    assert isinstance(definition, ast.ClassDef)
    return unset_max_steps(definition, trainer)


@pytest.mark.parametrize("trainer", [{}, {"max_epochs": 3}, {"max_steps": -1}, {"max_steps": None}])
def test_it_is_told_where_nobody_gives_it(trainer: dict[str, Any]) -> None:
    assert line(ONE, **trainer) == 3
    assert line("return Cosine(o, self.trainer.max_steps)", **trainer) == 3


@pytest.mark.parametrize(
    "text",
    [
        "return Cosine(o, T_max=self.trainer.estimated_stepping_batches)",
        "n = self.trainer.max_steps if self.trainer.max_steps > 0 else 5",
        "return Cosine(o, T_max=max(self.trainer.max_steps, 1) if self.trainer.max_steps else 1)",
        "return Cosine(o, T_max=self.max_steps)",
    ],
)
def test_what_asks_whether_it_is_given_is_left_alone(text: str) -> None:
    assert line(text) == 0


def test_where_it_is_given_nothing_is_said() -> None:
    assert line(ONE, max_steps=100) == 0


def test_at_the_failure_of_a_schedule_it_is_told_as_well() -> None:
    error = ValueError("Expected positive integer total_steps, but got -1")  # of OneCycleLR
    assert "total_steps=self.trainer.estimated_stepping_batches" in fix_of(error)
