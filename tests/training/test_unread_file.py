"""A file that is empty, cut, or none of its kind: what is said of real readers' errors."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.training.rank_failure import RankFailure, failure_of

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n"
HTML = b"<!DOCTYPE html>\n<html>log in</html>"
ANEW = "fetch it again, or write it anew"


def _json(path: Path) -> Any:
    with path.open() as stream:
        return json.load(stream)


def _pickle(path: Path) -> Any:
    with path.open("rb") as stream:
        return pickle.load(stream)


def _text(path: Path) -> Any:
    with path.open(encoding="utf-8") as stream:
        return stream.read()


def failed(read: Callable[[Any], Any], path: Path, content: bytes) -> RankFailure:
    path.write_bytes(content)
    with pytest.raises(Exception) as caught:
        read(path)
    return failure_of(caught.value)


def cause_of(failure: RankFailure) -> str:
    logs = ReadLogs()
    for number, line in enumerate(failure.traceback.splitlines()):
        logs.feed(line, "rank-0.log", number)
    return " ".join(item.cause for item in logs.findings() if item.is_known)


@pytest.mark.parametrize("read", [torch.load, np.load, _json, _pickle])
def test_an_empty_file_is_told_by_its_name(read: Callable[[Any], Any], tmp_path: Path) -> None:
    failure = failed(read, tmp_path / "a.dat", b"")
    assert failure.error.endswith(f"{tmp_path}/a.dat is empty (0 bytes): {ANEW}")


@pytest.mark.parametrize("read", [torch.load, np.load, _json, _pickle])
def test_a_pointer_of_git_lfs_and_a_page_are_told(
    read: Callable[[Any], Any], tmp_path: Path
) -> None:
    told = failed(read, tmp_path / "a.dat", LFS)
    assert told.fix == (
        f"{tmp_path}/a.dat is a pointer of Git LFS ({len(LFS)} bytes), not the file itself:"
        " git lfs pull"
    )
    assert "False" not in told.error.replace("allow_pickle=False", "")
    assert (
        f"a.dat is a page of HTML ({len(HTML)} bytes)" in failed(read, tmp_path / "a.dat", HTML).fix
    )


def test_a_cut_file_is_told_by_its_name(tmp_path: Path) -> None:
    torch.save(torch.ones(5000), tmp_path / "a.pt")
    np.save(tmp_path / "a.npy", np.ones(1000))
    (tmp_path / "a.pkl").write_bytes(pickle.dumps([*range(1000)]))
    for name, read in (("a.pt", torch.load), ("a.npy", np.load), ("a.pkl", _pickle)):
        path = tmp_path / name
        told = failed(read, path, path.read_bytes()[:1500])
        assert f"{name} is cut or damaged (1500 bytes)" in told.error, name


def test_what_is_no_file_of_torch_is_not_told_to_be_loaded_without_weights_only(
    tmp_path: Path,
) -> None:
    told = failed(torch.load, tmp_path / "a.pt", b"version 3 of something")
    assert "a.pt is no file of torch.save (22 bytes, begins with 'version 3" in told.error
    assert "weights_only" not in told.error
    assert "begins no pickle" in cause_of(told)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"w(S\xa0\x9d\x01\xf3" * 9, "is no file of torch.save (63 bytes): fetch it"),
        (b"x" * 23 + "é".encode(), f"begins with '{'x' * 23}')"),
        ("größe 3\n".encode(), "begins with 'größe 3\\n')"),
    ],
)
def test_the_first_bytes_are_shown_where_they_are_text(
    tmp_path: Path, content: bytes, shown: str
) -> None:
    assert shown in failed(torch.load, tmp_path / "a.pt", content).error


def test_a_whole_file_is_not_blamed(tmp_path: Path) -> None:
    torch.save(np.float64(1), tmp_path / "a.pt")  # none that weights_only takes
    told = failed(torch.load, tmp_path / "a.pt", (tmp_path / "a.pt").read_bytes())
    assert told.fix == ""
    assert "weights_only" in cause_of(told)
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    told = failed(np.load, tmp_path / "a.npy", (tmp_path / "a.npy").read_bytes())
    assert told.fix.startswith("it holds objects: ")
    with pytest.raises(FileNotFoundError) as caught:
        torch.load(tmp_path / "none.pt")
    assert failure_of(caught.value).fix.startswith(f"{tmp_path} has no none.pt, and a.pt: ")


@pytest.mark.filterwarnings("ignore:loadtxt")
def test_an_empty_table_is_told_where_the_line_names_it_or_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text("")
    with pytest.raises(IndexError) as caught:
        np.loadtxt("train.csv", delimiter=",")[:, 0]
    assert failure_of(caught.value).fix == f"train.csv is empty (0 bytes): {ANEW}"
    with Path("train.csv").open() as stream:
        rows = list(csv.reader(stream))
    with pytest.raises(IndexError) as caught:
        rows[0]
    assert failure_of(caught.value).fix == "rows is empty there"
    rows.append(["1"])
    with pytest.raises(IndexError) as caught:
        rows[1]
    assert failure_of(caught.value).fix == ""
    Path("train.csv").write_text("1\n2\n")
    with pytest.raises(IndexError) as caught:
        np.loadtxt("train.csv", delimiter=",")[:, 0]
    assert failure_of(caught.value).fix == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"K\xe4se\n", "is no text in utf-8 (byte 0xe4): write encoding='latin-1' (or what it"),
        (b"\x89PNG\r\n\0\0", "is no text (byte 0x89): open it with mode 'rb', or by what reads"),
    ],
)
def test_bytes_that_are_no_text_are_told_with_their_file(
    tmp_path: Path, content: bytes, said: str
) -> None:
    assert f"{tmp_path}/labels.txt {said}" in failed(_text, tmp_path / "labels.txt", content).fix


def test_an_empty_cell_is_told() -> None:
    for read in (float, int):
        with pytest.raises(ValueError, match="''") as caught:
            read("")
        assert "as of an empty cell" in failure_of(caught.value).fix
        with pytest.raises(ValueError, match="'x'") as caught:
            read("x")
        assert "'x' is no number: leave such a column or line out" in failure_of(caught.value).fix


def test_a_number_with_a_point_that_int_is_given_is_told() -> None:
    for text in ("3.0", " -1.", ".5", "1e3"):
        with pytest.raises(ValueError, match="base 10") as caught:
            int(text)
        assert f"{text!r} is no whole number: write float(...)" in failure_of(caught.value).fix
