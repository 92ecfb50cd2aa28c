"""A base that is named from another folder than that of the file it stands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

BEGINS = " (a path begins at the folder of e.yaml)"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, MINIMAL, "first.yaml")
    write(tmp_path, MINIMAL, "second.yml")
    write(tmp_path, MINIMAL, "configs/base.yaml")
    write(tmp_path, MINIMAL, "conf/deep/other.yaml")


def hint(line: str, name: str = "configs/e.yaml") -> str:
    path = write(Path(), f"{line}\nseed: 3\n", name)
    try:
        load(path)
    except ConfigError as error:
        return error.hint or ""
    return ""


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("base: configs/base.yaml", "write base: base.yaml"),
        ("base: configs/base", "write base: base"),
        ("base: [configs/base.yaml]", "write base: base.yaml"),
        ("base: first.yaml", "write base: ../first.yaml"),
        ("base: first", "write base: ../first"),
        ("base: second", "write base: ../second.yml"),
        ("base: ../base.yaml", "write base: base.yaml"),
        ("base: configs/nowhere/first.yaml", "write base: ../first.yaml"),
        ("base: [first.yaml, base.yaml]", "write ../first.yaml in its place"),
        ("base: [base.yaml, first.yaml]", "write ../first.yaml in its place"),
        ("defaults: [configs/base]", "write base in its place"),
        ("defaults: [first, _self_]", "write ../first in its place"),
        ("defaults: [conf/deep/other]", "write ../conf/deep/other in its place"),
    ],
)
def test_the_file_that_is_there_is_told_from_the_folder_of_the_config(line: str, fix: str) -> None:
    said = hint(line)
    assert said == f"{fix}{BEGINS}"
    old = line.partition(" ")[2].strip("[]").split(", ")
    new = fix.removeprefix("write base: ").removeprefix("write ").removesuffix(" in its place")
    wrong = next(it for it in old if it not in ("base.yaml", "_self_"))
    assert hint(line.replace(wrong, new)) == ""


def test_from_the_configs_folder_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("configs")
    assert hint("base: configs/base.yaml", "e.yaml") == f"write base: base.yaml{BEGINS}"


@pytest.mark.parametrize("line", ["base: nowhere.yaml", "base: configs/e.yaml"])
def test_without_such_a_file_it_is_told_where_it_was_looked_for(line: str) -> None:
    assert hint(line).startswith("looked beside it, in ")


def test_a_misspelled_one_is_told_as_before() -> None:
    assert hint("base: bsae.yaml") == "did you mean 'base'?"
