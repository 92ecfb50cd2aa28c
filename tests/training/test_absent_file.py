"""A file that is not there, of libraries whose error has its path in the text alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpc_train.training.failure_words import fix_of

H5 = "[Errno 2] Unable to synchronously open file (unable to open file: name = 'houses.csv', errno"


class Reads(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        return np.loadtxt("houses.csv")


@pytest.fixture
def began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "houses.csv").touch()
    return f"a relative path begins in {tmp_path}: did you mean 'data/houses.csv'?"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_text_file_of_numpys_is_told_with_the_one_that_is_there(began: str, workers: int) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        list(torch.utils.data.DataLoader(Reads(), num_workers=workers))
    assert fix_of(caught.value) == began
    texts = {"data.init_args.csv": "houses.csv"}
    of_key = "the path comes from data.init_args.csv"
    assert fix_of(caught.value, texts=texts) == f"{of_key}; {began}"


@pytest.mark.parametrize(
    "said",
    [
        f"{H5} = 2, error message = 'No such file or directory', flags = 0, o_flags = 0)",
        "No such file or directory (os error 2): houses.csv",
        'No such file or directory: "houses.csv"',
        "houses.csv",
    ],
)
def test_the_words_of_other_libraries_are_read(began: str, said: str) -> None:
    assert fix_of(FileNotFoundError(said)) == began


@pytest.mark.parametrize(
    "said", ["dataset not found.", "no data", "data/houses.csv not found.", "no checkpoint: houses"]
)
def test_of_a_text_without_such_a_path_nothing_is_said(began: str, said: str) -> None:
    assert began
    assert fix_of(FileNotFoundError(said)) == ""


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_file_that_a_list_names_and_its_folder_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    """`write the whole path` was told, which fails in the same way."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" if is_whole else Path("data")
    folder.mkdir()
    for number in range(5):
        (folder / f"00{number}.pt").touch()
    (folder / "train.csv").touch()

    def missing(path: Path) -> str:
        with pytest.raises(FileNotFoundError) as caught:
            path.open()
        return fix_of(caught.value)

    lacks = "bring it there, or take it out of what names it"
    no = f"{folder} has no 041.pt, and"
    assert missing(folder / "041.pt") == f"{no} 5 other .pt files: {lacks}"
    for number in (1, 2, 3):
        (folder / f"00{number}.pt").unlink()
    assert missing(folder / "041.pt") == f"{no} 000.pt, 004.pt: {lacks}"
    # Another ending, and another folder.
    assert lacks not in missing(folder / "041.png")
    assert lacks not in missing(folder / "more" / "041.pt")
    assert lacks not in missing(Path("041.pt"))
