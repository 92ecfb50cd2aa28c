"""The Trainer's num_training_batches in configure_optimizers, where it is infinite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_late_loaders import ALL, COSINE, CYCLE, refusal

BATCHES = "self.trainer.num_training_batches"
SAID = f"3: model.class_path: nets.Net.configure_optimizers counts with {BATCHES} (nets.py:"
OF_ONE = f"write {ALL} // self.trainer.max_epochs for "
OF_ALL = f"write {ALL}, the steps of the whole training, for "


@pytest.mark.parametrize(
    ("lines", "line", "fix"),
    [
        (f"{CYCLE}total_steps={BATCHES})", 11, f"{OF_ALL}{BATCHES}"),
        (f"{COSINE}{BATCHES})", 11, f"{OF_ONE}{BATCHES}"),
        (f"{COSINE}T_max={BATCHES} * self.trainer.max_epochs)", 11, f"{OF_ONE}{BATCHES}"),
        (f"{CYCLE}total_steps=2 * {BATCHES})", 11, f"{OF_ONE}{BATCHES}"),
        (f"n = {BATCHES}; {COSINE}int(n))", 12, f"{OF_ONE}n"),
        (f"t = self.trainer; n = t.num_training_batches; {CYCLE}total_steps=n)", 13, f"{OF_ALL}n"),
    ],
)
def test_it_is_refused_with_its_line_and_what_to_write(
    tmp_path: Path, lines: str, line: int, fix: str
) -> None:
    assert refusal(tmp_path, lines) == f"{SAID}{line}), which is infinite there | {fix}"


def test_without_a_number_of_epochs_all_steps_are_named(tmp_path: Path) -> None:
    told = refusal(tmp_path, f"{COSINE}{BATCHES})", trainer="{max_steps: 9}")
    assert told.endswith(f"| {OF_ALL}{BATCHES}")


@pytest.mark.parametrize(
    "lines",
    [
        f"print({BATCHES}); {CYCLE}total_steps={ALL})",
        f"{COSINE}min(1000, {BATCHES} * 2))",
        f"n = {BATCHES} if {BATCHES} != float('inf') else 100; {COSINE}n)",
        f"{ALL}; {COSINE}{BATCHES})",
        f"n = lambda: {BATCHES} * 2; {COSINE}9)",
        f"n = {BATCHES}; n = 9; {COSINE}n)",
    ],
)
def test_what_may_be_a_number_or_is_not_counted_with_is_legal(tmp_path: Path, lines: str) -> None:
    assert refusal(tmp_path, lines) == ""


def test_another_method_may_count_with_it(tmp_path: Path) -> None:
    more = f"def on_train_start(self): self.total = {BATCHES} * 2"
    assert refusal(tmp_path, f"{COSINE}9)", more) == ""
