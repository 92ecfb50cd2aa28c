"""Samples and data sets without a length, and paths with a ~, from torch's own errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hpc_train.training.failing_frame import of_frame
from hpc_train.training.failure_words import fix_of


class Endless(Dataset[torch.Tensor]):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(2)


class Holey(Endless):
    """Gives None where it skips a sample: alone, or inside of one."""

    def __init__(self, *, inside: bool) -> None:
        self.inside = inside

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        if index < 2:
            return torch.zeros(2), torch.zeros(1)
        return (torch.zeros(2), None) if self.inside else None


def failed(dataset: Any) -> BaseException:
    with pytest.raises(TypeError) as caught:
        list(DataLoader(dataset, batch_size=4, shuffle=True))
    return caught.value


def test_a_data_set_without_a_length_is_told_what_to_write() -> None:
    assert of_frame(failed(Endless())) == "write def __len__(self) in Endless"


@pytest.mark.parametrize("inside", [False, True])
def test_none_as_a_sample_is_named_where_torch_asks_for_its_length(inside: bool) -> None:
    error = failed(Holey(inside=inside))
    told = "the data set gave None as a sample: __getitem__ has to return one" in of_frame(error)
    assert told == ("has no len()" in str(error))


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
