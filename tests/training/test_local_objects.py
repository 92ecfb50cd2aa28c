"""Lambdas and functions in functions that cannot be pickled: their line, and what to write."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.training.rank_failure import failure_of

of_the_module: Callable[[Any], Any] = lambda item: item  # noqa: E731


class Data:
    def train_dataloader(self) -> Any:
        return lambda batch: batch

    def val_dataloader(self) -> Any:
        size = 3

        def pad(batch: Any, to: int) -> Any:
            return batch, to, size

        return pad

    @functools.lru_cache  # noqa: B019
    def test_dataloader(self) -> Any:
        def make() -> Any:
            return lambda: 0

        return make()

    def predict_dataloader(self) -> Any:
        class Sampler: ...

        return Sampler()

    def two(self) -> Any:
        first = lambda: 1  # noqa: E731
        second = lambda: 2  # noqa: E731
        return [first, second][1]


def failed(value: Any) -> Any:
    try:
        pickle.dumps(value)
    except (AttributeError, pickle.PicklingError) as error:
        return failure_of(error)
    raise AssertionError("it was pickled")


@pytest.mark.parametrize(
    ("value", "after", "fix"),
    [
        (Data().train_dataloader(), (Data.train_dataloader, 1), "def function(batch): ..."),
        (
            Data().val_dataloader(),
            (Data.val_dataloader, 3),
            "def pad(batch, to): ..., and give it size as arguments by functools.partial",
        ),
        (Data().test_dataloader(), (Data.test_dataloader.__wrapped__, 3), "def function(): ..."),
        (Data().predict_dataloader(), (Data.predict_dataloader, 1), "class Sampler: ..."),
        (of_the_module, (of_the_module, 0), "def function(item): ..."),
    ],
)
def test_what_cannot_be_pickled_is_named_by_its_line_and_what_to_write(
    value: Any, after: tuple[Any, int], fix: str
) -> None:
    told = failed(value)
    function, lines = after
    assert told.where == f"{__file__}:{function.__code__.co_firstlineno + lines}"
    assert told.fix.endswith(f"; move it to the top of the module: {fix}")


def test_of_two_that_may_be_meant_none_is_named() -> None:
    told = failed(Data().two())
    assert told.where == f"{__file__}:{failed.__code__.co_firstlineno + 2}"
    assert "move it" not in told.fix
    assert "no lambda and no function in a function" in told.fix


def test_words_of_another_kind_name_nothing() -> None:
    told = failure_of(AttributeError("Can't pickle local object 'nobody.<locals>.<lambda>'"))
    assert (told.where, "move it" in told.fix) == ("", False)
