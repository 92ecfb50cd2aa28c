"""Samples and data sets without a length, and paths with a ~, from torch's own errors."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, random_split

from hpc_train.training.failures.failing_frame import of_frame
from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import user_frame
from hpc_train.training.resume.sampling import evaluation_loader


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


class Kept(Dataset[Any]):
    def __init__(self) -> None:
        self.made, self.x, self.y = object(), torch.zeros(4, 2), torch.zeros(4)

    def __getitem__(self, index: int) -> Any:
        return self.x[index], self.y[index]


class Named(Kept):
    def _len(self) -> int:
        return 4


class Below(Kept):
    pass


class Bare:
    """Of no Dataset of torch's, which a loader takes as well."""

    rows = (1, 2)

    def __getitem__(self, number: int) -> int:
        return self.rows[number]


def its_length(dataset: Any) -> Any:
    return lambda: [len(dataset)]


def half_of(dataset: Any) -> Any:
    return lambda: random_split(dataset, [0.5, 0.5])


def evaluated(dataset: Any) -> Any:
    return lambda: evaluation_loader(DataLoader(dataset), rank=0, world_size=2, seed=0)


def shuffled(dataset: Any) -> Any:
    return lambda: list(DataLoader(dataset, batch_size=4, shuffle=True))


def joined(dataset: Any) -> Any:
    return lambda: ConcatDataset([dataset, dataset])


LENGTHLESS = (
    (Endless, "write in it def __len__(self), which returns the number of samples"),
    (Kept, "write in it def __len__(self): return len(self.x)"),
    (Below, "write in it def __len__(self): return len(self.x)"),
    (Named, f"rename _len (line {Named._len.__code__.co_firstlineno}) to __len__"),
    (Bare, "write in it def __len__(self): return len(self.rows)"),
)


@pytest.mark.parametrize("asked", [its_length, half_of, evaluated, shuffled, joined])
@pytest.mark.parametrize(("kind", "write"), LENGTHLESS)
def test_a_data_set_without_a_length_is_told_what_to_write(
    asked: Any, kind: type, write: str
) -> None:
    with pytest.raises(TypeError, match="has no len") as caught:
        asked(kind())()
    line = inspect.getsourcelines(kind)[1]
    place = f"{__name__}.{kind.__name__} (tests/training/test_no_length.py:{line})"
    assert fix_of(caught.value) == f"{place} has no __len__: {write}"
    assert user_frame(caught.value) == f"{__file__}:{line}"


class Nothing(Kept):
    def __len__(self) -> Any:
        len(self.y)


class Half(Kept):
    def __len__(self) -> Any:
        return len(self.y) / 2


@pytest.mark.parametrize("asked", [its_length, half_of, evaluated, shuffled])
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Nothing, "returns nothing: write return len(self.y)"),
        (Half, "gives a float: have it return a whole number, as of int(...) or //"),
    ],
)
def test_a_length_that_is_no_number_is_told_with_its_line(asked: Any, kind: Any, told: str) -> None:
    with pytest.raises(TypeError, match="cannot be interpreted") as caught:
        asked(kind())()
    line = kind.__len__.__code__.co_firstlineno
    place = f"{__name__}.{kind.__name__}.__len__ (tests/training/test_no_length.py:{line})"
    assert fix_of(caught.value) == f"{place} {told}"
    assert user_frame(caught.value) == f"{__file__}:{line}"


def test_a_stream_that_is_asked_for_its_length_is_not_told_to_have_one() -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(())

        def __getitem__(self, index: int) -> Any:
            return index

    with pytest.raises(TypeError, match="has no len") as caught:
        len(Stream())  # type: ignore[arg-type]
    assert fix_of(caught.value) == ""


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
