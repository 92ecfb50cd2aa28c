"""A file that is not there, of libraries whose error has its path in the text alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpc_train.training.failures.failure_words import fix_of

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


class Joined(torch.utils.data.Dataset[Any]):
    def __init__(self, root: str, way: int) -> None:
        self.root, self.way = root, way

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        name, root = "c19.wav", self.root
        if self.way == 0:
            return np.loadtxt(self.root + name)
        if self.way == 1:
            return np.loadtxt(f"{self.root}{name}")
        if self.way == 2:
            path = root + name
            return np.loadtxt(path)
        return np.loadtxt(root + name[:3] + ".wav")


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("way", "write"),
    [
        (0, "os.path.join(self.root, name) for self.root + name"),
        (1, "{self.root}/ for {self.root} in the f-string"),
        (2, "os.path.join(root, name) for root + name"),
        (3, "os.path.join(root, name[:3]) for root + name[:3]"),
    ],
)
def test_a_slash_that_is_missing_between_folder_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_whole: bool, workers: int, way: int, write
) -> None:
    """`write the whole path` was told, with which the slash is missing as before."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "c19.wav").touch()
    root = str(tmp_path / "clips") if is_whole else "clips"
    with pytest.raises(FileNotFoundError) as caught:
        list(torch.utils.data.DataLoader(Joined(root, way), num_workers=workers))
    said = f"c19.wav is in the folder {root}, and a slash between them is missing: write "
    assert fix_of(caught.value) == said + (
        "os.path.join(FOLDER, NAME) for FOLDER + NAME" if workers else write
    )


def test_where_the_folder_has_no_such_file_no_slash_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips").mkdir()
    with pytest.raises(FileNotFoundError) as caught:
        np.loadtxt("clipsc19.wav")
    assert "slash" not in fix_of(caught.value)


def test_a_missing_slash_is_told_before_what_else_its_folder_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips" / "dogs").mkdir(parents=True)
    for name in ("other.wav", "dogs/c19.wav"):
        (tmp_path / "clips" / name).touch()
    with pytest.raises(FileNotFoundError) as caught:
        np.loadtxt("clips/dogsc19.wav")
    assert "c19.wav is in the folder clips/dogs, and a slash between" in fix_of(caught.value)


def test_a_path_as_the_configs_folder_has_it_is_told_as_the_job_has_it(began: str) -> None:
    assert fix_of(FileNotFoundError(2, "No such", "../data/houses.csv")) == began
