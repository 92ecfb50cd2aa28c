"""Samples and data sets without a length, and paths with a ~, from torch's own errors."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hpc_train.training.failing_frame import of_frame
from hpc_train.training.failure_words import fix_of
from hpc_train.training.rank_failure import user_frame


class Endless(Dataset[torch.Tensor]):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(2)


class Holey(Endless):
    """Gives None where it skips a sample: alone, or inside of one."""

    def __init__(self, *, inside: bool, first: int) -> None:
        self.inside, self.first = inside, first

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        if index < self.first:
            return torch.zeros(2), torch.zeros(1)
        return (torch.zeros(2), None) if self.inside else None


def failed(dataset: Any) -> BaseException:
    with pytest.raises(TypeError) as caught:
        list(DataLoader(dataset, batch_size=4, shuffle=True))
    return caught.value


def test_a_data_set_without_a_length_is_told_what_to_write() -> None:
    assert of_frame(failed(Endless())) == "write def __len__(self) in Endless"


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("first", [1, 2])
def test_a_set_that_gives_none_is_named_with_its_method(first: int, workers: int) -> None:
    with pytest.raises(TypeError) as caught:
        list(DataLoader(Holey(inside=False, first=first), batch_size=4, num_workers=workers))
    told = f"{__name__}.Holey.__getitem__ gave None: it has to return a whole sample on every way"
    assert fix_of(caught.value).startswith(told)
    line = inspect.getsourcelines(Holey.__getitem__)[1]
    assert user_frame(caught.value) == f"{__file__}:{line}"


class Thin(Endless):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return None if index else torch.zeros(2)


def test_none_among_tensors_is_told_so_too() -> None:
    with pytest.raises(TypeError, match="but got NoneType") as caught:
        list(DataLoader(Thin(), batch_size=4))
    assert "Thin.__getitem__ gave None" in fix_of(caught.value)


def test_none_in_a_sample_is_told_where_torch_says_so() -> None:
    with pytest.raises(TypeError, match="NoneType") as caught:
        list(DataLoader(Holey(inside=True, first=0), batch_size=4))
    assert "Holey.__getitem__ gave None" in fix_of(caught.value)


def test_what_has_no_length_elsewhere_is_the_programs_own() -> None:
    with pytest.raises(TypeError) as caught:
        len(3)  # type: ignore[arg-type]
    assert of_frame(caught.value) == ""
    with pytest.raises(TypeError) as caught:
        len(None)  # type: ignore[arg-type]
    assert of_frame(caught.value) == ""


def test_a_path_with_a_tilde_is_told_that_nothing_replaces_it() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        Path("~/sets/train.pt").read_bytes()
    fix = "nothing replaces ~ here: os.path.expanduser('~/sets/train.pt'), or the whole path"
    assert fix_of(caught.value) == fix
