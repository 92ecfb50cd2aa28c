"""Whole or absent: what is flushed, in which order, and what is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.runs.atomic import write_text


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What was flushed, and which names its folder had at that moment."""
    calls: list[tuple[str, list[str]]] = []
    really = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        folder = path if path.is_dir() else path.parent
        calls.append((path.name, names_in(folder)))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return calls


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_file_is_flushed_before_it_gets_its_name_and_its_folder_after(
    tmp_path: Path, flushed: list[tuple[str, list[str]]]
) -> None:
    write_text(tmp_path / "plan.json", "{}")
    (temporary, before), (folder, after) = flushed
    assert before == [temporary]
    assert temporary.startswith(".plan.json.")
    assert (folder, after) == (tmp_path.name, ["plan.json"])


def test_a_file_that_is_rewritten_each_second_is_not_flushed(
    tmp_path: Path, flushed: list[tuple[str, list[str]]]
) -> None:
    write_text(tmp_path / "rank-0.json", "{}", durable=False)
    assert flushed == []
    assert (tmp_path / "rank-0.json").read_text() == "{}"


def test_no_descriptor_stays_open_whether_it_works_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "file", "x")
    before = descriptors()
    for _ in range(3):
        write_text(tmp_path / "file", "x")
    assert descriptors() == before

    def refuse(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output"):
            write_text(tmp_path / "file", "y")
    assert descriptors() == before
    assert names_in(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "x"


def test_a_folder_that_cannot_be_flushed_is_told_and_leaves_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.fsync

    def refuse(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(5, "Input/output error")
        really(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    before = descriptors()
    with pytest.raises(OSError, match="Input/output"):
        write_text(tmp_path / "file", "y")
    assert descriptors() == before
