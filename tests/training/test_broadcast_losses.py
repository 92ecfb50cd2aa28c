"""What is told of a loss whose input and target torch broadcasts: torch's own functions, each."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.ranks import read_notes
from hpc_train.training.fit_notes.broadcast_losses import broadcasts_noted
from tests.training.test_loss_shapes import line_of

# As Python has it by itself; the warnings are what is asked for here.
pytestmark = pytest.mark.filterwarnings("always:Using a target size")
FILE = "tests/training/test_broadcast_losses.py"
FUNCTIONS = [
    functional.mse_loss,
    functional.l1_loss,
    functional.smooth_l1_loss,
    functional.huber_loss,
]
BETWEEN = "values of different samples are compared"


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptDir:
    folder = RunDir(tmp_path).attempt(0)
    folder.path.mkdir(parents=True)
    return folder


def noted(attempt: AttemptDir, compute: Callable[..., Any], *shapes: tuple[int, ...]) -> list[str]:
    with broadcasts_noted(attempt):
        compute(*(torch.zeros(it) for it in shapes))
    return read_notes(attempt)


def test_a_loss_of_a_column_and_a_row_is_told_with_its_line_and_what_to_write(
    attempt: AttemptDir,
) -> None:
    def step(out: Any, y: Any) -> Any:
        return functional.mse_loss(out, y)

    has = "is given an input of shape [32, 1] and a target of [32]"
    assert noted(attempt, step, (32, 1), (32,)) == [
        (
            f"mse_loss ({FILE}:{line_of(step, 1)}) {has}, which torch broadcasts to [32, 32]:"
            f" {BETWEEN}; write out.squeeze(1)"
        )
    ]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_of_torchs_functions_is_named(attempt: AttemptDir, function: Any) -> None:
    (said,) = noted(attempt, lambda out, y: function(out, y), (8, 1), (8,))
    assert said.startswith(f"{function.__name__} ({FILE}:")
    assert said.endswith("; write out.squeeze(1)")


PAIRS = [
    ((32,), (32, 1), "; write y.squeeze(1)"),
    ((2, 1), (2,), "; write out.squeeze(1)"),
    ((4, 1, 5, 5), (4, 5, 5), "; write out.squeeze(1)"),
    ((1, 4), (4, 1), BETWEEN),  # another order, or meant so: what to write is not known
    ((32, 1), (16,), BETWEEN),
]


@pytest.mark.parametrize(("has", "wants", "ends"), PAIRS)
def test_what_to_write_follows_from_the_shapes(
    attempt: AttemptDir, has: tuple[int, ...], wants: tuple[int, ...], ends: str
) -> None:
    (said,) = noted(attempt, lambda out, y: functional.mse_loss(out, y), has, wants)
    assert f"an input of shape {list(has)} and a target of {list(wants)}, which" in said
    assert said.endswith(ends)


@pytest.mark.parametrize(
    ("has", "wants"),
    [((32, 1), (32, 1)), ((1, 1), (1,)), ((32, 1), (1,)), ((32, 3), (3,)), ((0, 1), (0,))],
)
def test_shapes_that_are_the_same_and_numbers_for_all_samples_are_told_nothing_of(
    attempt: AttemptDir, has: tuple[int, ...], wants: tuple[int, ...]
) -> None:
    assert noted(attempt, lambda out, y: functional.mse_loss(out, y), has, wants) == []


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.criterion = nn.Linear(3, 1), nn.MSELoss()


@pytest.mark.parametrize(
    ("compute", "fix"),
    [
        (lambda m, x, y: m.criterion(m.layer(x), y), "write m.layer(x).squeeze(1)"),
        (lambda m, x, y: functional.mse_loss(m.layer(x), y), "write m.layer(x).squeeze(1)"),
        (
            lambda m, x, y: functional.mse_loss(input=m.layer(x), target=y),
            "write m.layer(x).squeeze(1)",
        ),
        (lambda m, x, y: functional.mse_loss(m.layer(x) + 0, y), "take .squeeze(1) of the input"),
        (lambda m, x, y: nn.L1Loss()(*[m.layer(x), y]), "take .squeeze(1) of the input"),
        (
            lambda m, x, y: (
                functional.mse_loss(m.layer(x), y) + functional.mse_loss(m.layer(-x), y)
            ),
            "take .squeeze(1) of the input",
        ),
    ],
)
def test_the_fix_names_what_the_line_writes_where_that_is_sure(
    attempt: AttemptDir, compute: Any, fix: str
) -> None:
    model = Model()
    (said,) = noted(attempt, lambda x, y: compute(model, x, y), (6, 3), (6,))
    assert said.endswith(f"; {fix}")


def test_a_line_is_told_once_whatever_its_last_batch_has_and_another_line_as_well(
    attempt: AttemptDir,
) -> None:
    def step(out: Any, y: Any) -> None:
        functional.mse_loss(out, y)

    def other(out: Any, y: Any) -> None:
        functional.mse_loss(out, y)

    for rows in (32, 8):
        noted(attempt, step, (rows, 1), (rows,))
    assert len(noted(attempt, other, (8, 1), (8,))) == 2


def test_filters_and_what_shows_a_warning_work_as_before(attempt: AttemptDir) -> None:
    out, y, shown = torch.zeros(4, 1), torch.zeros(4), []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = users = lambda *given, **named: shown.append(str(given[0]))
        with broadcasts_noted(attempt):
            warnings.warn("mine", stacklevel=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                functional.mse_loss(out, y)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(UserWarning, match="Using a target size"):
                    functional.mse_loss(out, y)
            assert (read_notes(attempt), shown) == ([], ["mine"])
            functional.mse_loss(out, y)
        assert warnings.showwarning is users
        functional.l1_loss(out, y)
    assert len(shown) == 3
    assert len(read_notes(attempt)) == 1


def test_what_the_user_sets_meanwhile_stays(attempt: AttemptDir) -> None:
    with warnings.catch_warnings():
        with broadcasts_noted(attempt):
            ours = warnings.showwarning

            def users(*given: Any, **named: Any) -> None:
                ours(*given, **named)

            warnings.showwarning = users
            functional.mse_loss(torch.zeros(4, 1), torch.zeros(4))
        assert warnings.showwarning is users
    (said,) = read_notes(attempt)
    assert f"{FILE}:{line_of(test_what_the_user_sets_meanwhile_stays, 9)}" in said


def test_a_process_that_is_forked_off_leaves_it_to_the_rank(
    attempt: AttemptDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broadcasts_noted(attempt):
        monkeypatch.setattr(os, "getpid", lambda: 1)
        functional.mse_loss(torch.zeros(4, 1), torch.zeros(4))
    assert read_notes(attempt) == []
