"""A data set whose class has no `__getitem__`, or has it under another name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import user_frame


class Sized(Dataset[Any]):
    def __len__(self) -> int:
        return 4


class Misnamed(Sized):
    def get_item(self, index: int) -> Any:
        return torch.zeros(2)


class Given(Sized):
    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError("Subclasses of Given should implement it")


def failed(dataset: Any, workers: int = 0) -> BaseException:
    with pytest.raises(NotImplementedError) as caught:
        list(DataLoader(dataset, batch_size=2, num_workers=workers))
    return caught.value


def line_of(method: Any) -> int:
    return int(method.__code__.co_firstlineno)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("dataset", [Misnamed(), Subset(Misnamed(), [0, 1])])
def test_the_method_that_is_meant_is_told_with_its_line(dataset: Any, workers: int) -> None:
    error = failed(dataset, workers)
    line = line_of(Misnamed.get_item)
    assert fix_of(error) == (
        f"{__name__}.Misnamed (tests/training/test_sampleless_set.py:{line - 1}) has no"
        f" __getitem__: rename get_item (line {line}) to __getitem__"
    )
    assert user_frame(error) == f"{__file__}:{line}"


def test_without_such_a_method_the_class_is_told_with_what_to_write() -> None:
    error = failed(Sized())
    assert fix_of(error).endswith(") has no __getitem__: write def __getitem__(self, index) in it")
    assert user_frame(error) == f"{__file__}:{line_of(Sized.__len__) - 1}"


def test_another_error_of_that_kind_is_left_as_it_is() -> None:
    assert not fix_of(failed(Given()))
