"""A collate_fn of more values than it is given, or that returns none: whose it is, and a fix."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import user_frame
from hpc_train.training.resume.untrained import no_loss

DATA = TensorDataset(torch.zeros(4, 2), torch.zeros(4))


def of_two(xs: Any, ys: Any) -> Any:
    return torch.stack(xs), torch.stack(ys)


def padded(batch: Any, pad: int) -> Any:
    return batch, pad


def silent(batch: Any) -> None:
    x = torch.stack([it[0] for it in batch])  # noqa: F841
    y = torch.stack([it[1] for it in batch])  # noqa: F841


def calls_others(batch: Any) -> Any:
    return of_two(batch)  # type: ignore[call-arg]


class Owner:
    def joined(self, xs: Any, ys: Any) -> Any:
        return xs, ys


def failed(collate: Any, workers: int) -> BaseException:
    with pytest.raises(TypeError, match="missing 1 required") as caught:
        list(DataLoader(DATA, batch_size=2, collate_fn=collate, num_workers=workers))
    return caught.value


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("collate", "hint"),
    [
        (of_two, "write def of_two(batch), and begin it with xs, ys = zip(*batch)"),
        (padded, "give it the others: collate_fn=functools.partial(padded, pad=...)"),
        (Owner().joined, "write def joined(self, batch), and begin it with xs, ys = zip(*batch)"),
    ],
)
def test_a_function_of_several_values_is_told_with_what_it_is_given(
    collate: Any, hint: str, workers: int
) -> None:
    error = failed(collate, workers)
    code = collate.__code__
    place = f"(tests/training/test_collate_errors.py:{code.co_firstlineno})"
    told = f"{__name__}.{collate.__qualname__} {place} is given one list of samples: {hint}"
    assert fix_of(error) == told
    assert user_frame(error) == f"{__file__}:{code.co_firstlineno}"


def test_another_function_that_lacks_a_value_is_the_programs_own() -> None:
    assert "list of samples" not in fix_of(failed(calls_others, 0))
    assert "list of samples" not in fix_of(failed(functools.partial(of_two), 0))


class Net(torch.nn.Module):
    def training_step(self, batch: Any) -> Any: ...


def test_a_fit_of_batches_that_are_none_tells_who_made_none() -> None:
    net = Net()
    loader = DataLoader(DATA, collate_fn=silent)
    error, line = no_loss(net, loader), silent.__code__.co_firstlineno
    assert error.where == f"{__file__}:{line}"
    assert error.message == (
        f"each batch was None, and nothing was trained: {__name__}.silent"
        f" (tests/training/test_collate_errors.py:{line}) returns nothing"
    )
    assert error.hint == "end it with return x, y"
    assert "training_step of" in no_loss(net, DataLoader(DATA)).message
