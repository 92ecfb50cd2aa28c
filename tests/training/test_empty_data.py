"""A data set without samples is told with what of it is empty, and where it looked."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from hpc_train.training.failures.empty_data import EmptySetError, why_empty
from hpc_train.training.rank_failure import failure_of


class Files(Dataset[Any]):
    def __init__(self, root: str = "data", kind: str = "png") -> None:
        self.root = root
        self.other = Path(root) / "there"
        self.files = self.found(kind)

    def found(self, kind: str) -> list[Any]:
        return []

    def __len__(self) -> int:
        return len(self.files)


class Globs(Files):
    def __init__(self) -> None:
        self.files = sorted(Path("data/images").glob("*.png"))


class Joins(Files):
    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = glob.glob(os.path.join(root, "train", "*.png"))  # noqa: PTH207, PTH118


class Divides(Files):
    def __init__(self, root: str) -> None:
        self.root = Path(root)
        self.files = [str(it) for it in (self.root / "train").glob("*.png")]


class Moves(Files):
    def __init__(self, root: str) -> None:
        self.root = f"{root}/elsewhere"
        self.files = list(Path(root).glob("*.png"))


class Filters(Files):
    def __init__(self) -> None:
        self.files = [it for it in Path("data").glob("*.csv") if it.stat().st_size]


class Fills(Files):
    def __init__(self) -> None:
        self.files = []
        for name in Path("data").glob("*.png"):
            self.files.append(name)


class Kept(Files):
    def __init__(self) -> None:
        self.x = torch.zeros(0, 3)

    def __len__(self) -> int:
        return len(self.x)


class Lists(Files):
    def __init__(self) -> None:
        self.files = [it for it in os.listdir("data") if it.endswith(".png")]  # noqa: PTH208


def place(kind: type, line: int) -> str:
    first = kind.__init__.__code__.co_firstlineno  # type: ignore[misc]
    return f"{Path(__file__).relative_to(Path.cwd())}:{first + line}"


NAME = "tests.training.test_empty_data"


@pytest.fixture
def here() -> str:
    return str(Path(__file__).parents[2])


def test_the_folder_of_a_glob_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dataset = Globs()
    with pytest.raises(ValueError, match="num_samples=0") as caught:
        DataLoader(dataset, shuffle=True)
    found = failure_of(caught.value).fix
    assert found == (
        f"{NAME}.Globs has no sample: self.files is an empty list ({place(Globs, 1)}:"
        " sorted(Path('data/images').glob('*.png'))); there is no folder"
        f" {Path.cwd()}/data/images"
    )


def test_a_folder_with_other_files_is_told_with_one_of_them(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    assert why_empty(Joins(tmp_path)).endswith(f"; {tmp_path}/train is empty")
    (tmp_path / "train" / "a.jpg").touch()
    told = f"; nothing in {tmp_path}/train fits *.png, as a.jpg does not"
    assert why_empty(Joins(tmp_path)).endswith(told)
    assert why_empty(Divides(str(tmp_path))).endswith(told)


def test_a_name_that_may_be_another_path_tells_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").touch()
    assert why_empty(Moves(str(tmp_path))).endswith(": list(Path(root).glob('*.png')))")
    monkeypatch.chdir(tmp_path)
    assert why_empty(Filters()).endswith("if it.stat().st_size])")
    assert why_empty(Lists()).endswith("if it.endswith('.png')])")
    told = why_empty(Fills())
    assert "self.files is an empty list (" in told
    line = Fills.__init__.__code__.co_firstlineno + 1
    assert told.endswith(f"test_empty_data.py:{line})")


def test_a_set_of_a_method_and_of_tensors_is_told_by_its_attribute() -> None:
    made = f"{place(Files, 3)}: self.found(kind))"
    assert why_empty(Files()).endswith(f"Files has no sample: self.files is an empty list ({made}")
    assert "Kept has no sample: self.x is an empty Tensor (" in why_empty(Kept())


def test_sets_of_torchs_are_told_by_what_they_are_made_of() -> None:
    whole = TensorDataset(torch.zeros(3, 1))
    assert why_empty(Subset(whole, [])) == "it is a Subset of 0 of the 3 samples of a TensorDataset"
    assert why_empty(TensorDataset(torch.zeros(0, 1))) == "it is a TensorDataset of 0 samples"
    assert "Globs has no sample" in why_empty(Subset(Globs(), []))
    assert why_empty([]) == ""
    assert why_empty(range(0)) == ""


class Windows(Dataset[Any]):
    def __init__(self, series: Any, window: int) -> None:
        self.series, self.window = series, window

    def __len__(self) -> int:
        return max(0, len(self.series) - self.window)


class Steps(Windows):
    def __len__(self) -> int:
        count = len(self.series) // self.window
        return count  # noqa: RET504 - as it is written


class Fixed(Dataset[Any]):
    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("series", [torch.zeros(120), [0.0] * 120])
def test_a_length_that_is_worked_out_is_told_with_its_numbers(series: Any) -> None:
    line = Windows.__len__.__code__.co_firstlineno + 1
    told = (
        f"{Windows.__module__}.Windows has no sample: __len__ gives max(0, len(self.series) -"
        f" self.window) (tests/training/test_empty_data.py:{line}), and len(self.series) is 120"
        " and self.window is 128"
    )
    assert why_empty(Windows(series, 128)) == told
    assert why_empty(Subset(Windows(series, 128), [])) == told


def test_a_length_without_such_numbers_is_not_told() -> None:
    assert why_empty(Steps([0.0], 3)) == ""
    assert why_empty(Fixed()) == ""


GIVEN = {
    "model.init_args.root": "models",
    "data.init_args.csv": "a.csv",
    "data.init_args.kind": "jpg",
    "data.init_args.hub_token": "abc",
    "data.init_args.empty": "",
}


def test_the_keys_of_what_the_data_are_given_are_named_first_those_of_the_line() -> None:
    look = "; look at data.init_args.kind (jpg) and data.init_args.csv (a.csv)"
    with pytest.raises(ValueError, match="num_samples=0") as caught:
        DataLoader(Files(), shuffle=True)
    assert failure_of(caught.value, texts=GIVEN).fix.endswith(f"self.found(kind)){look}")
    failed = failure_of(EmptySetError(Files()), texts=GIVEN)
    assert failed.error.startswith(f"the train set is empty ({NAME}.Files has no sample: ")
    assert failed.error.endswith(f"self.found(kind)){look})")
    fixed = failure_of(EmptySetError(Fixed()), texts=GIVEN)
    assert "(look at what your dataset reads, and where; look at data.init_args.csv" in fixed.error


def test_of_many_texts_those_of_the_line_alone_are_named() -> None:
    many = {f"data.init_args.a{number}": "x" for number in range(9)}
    told = failure_of(EmptySetError(Files()), texts={**many, **GIVEN}).error
    assert told.endswith("; look at data.init_args.kind (jpg))")
    assert "look at data" not in failure_of(EmptySetError(Files()), texts=many).error
    assert "look at data" not in failure_of(EmptySetError(Files())).error
