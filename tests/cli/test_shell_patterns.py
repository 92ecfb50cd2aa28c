"""`--name m*` without quotes: the shell hands over the names of files, and that is what is said."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

FILES = ("m.yaml", "mine.py", "n.yaml", "one.py", "a file.py", "nine.sh")


@pytest.fixture
def expanded(hpc, make_run, tmp_path: Path):
    """What is said of a command line that a shell has read first, in a folder with files."""
    make_run(1, ended=True)
    for name in FILES:
        (tmp_path / name).touch()
    (tmp_path / ".hidden").touch()

    def call(line: str):
        read = subprocess.run(
            ["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True
        )
        return hpc(*read.stdout.decode().split("\0")[:-1])

    return call


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("list --name m*", "--name 'm*'"),
        ("list --name *.yaml", "--name '*.yaml'"),
        ("list m*", "--name 'm*'"),
        ("list --name n*.* --json", "--name 'n*'"),
        ("list --name [mo]*", "--name 'PATTERN*'"),
        ("rm m*", "rm 'm*'"),
        ("rm *.yaml --yes", "rm '*.yaml'"),
        ("rm *.py --dry-run", "rm '*.py'"),
        ("report m*", "report 'm*'"),
    ],
)
def test_a_pattern_that_the_shell_has_expanded_is_told_with_its_quotes(
    expanded, line: str, pattern: str
) -> None:
    said = expanded(line)
    text = said.out if "--json" in line else said.err
    assert said.code in (2, 5)
    assert "the shell has put files of this folder in the place of a pattern" in text
    assert f"put the pattern in quotes: {'' if 'list' in line else 'hpc-train '}{pattern}" in text


def test_what_is_told_to_type_finds_the_runs(expanded, hpc) -> None:
    fix = expanded("list --name n*").err.partition("in quotes: ")[2]
    assert hpc("list", *shlex.split(fix)).out.count("completed") == 1


def test_top_has_no_pattern_and_says_so(expanded) -> None:
    assert "write --filter and a part of the names, without a *" in expanded("top --filter m*").err


@pytest.mark.parametrize("line", ["rm o*", "report o*", "list --name o*"])
def test_one_file_may_have_been_a_pattern(expanded, line: str) -> None:
    assert "a pattern belongs in quotes" in expanded(line).err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("list --name net elsewhere", "write --name elsewhere"),
        ("rm nothing", "no run answers to 'nothing'"),
        ("rm nothing m.yaml", "no run answers to 'nothing'"),
        ("status m*", "one RUN at a time"),
    ],
)
def test_other_words_are_not_taken_for_files(expanded, line: str, told: str) -> None:
    said = expanded(line)
    assert told in said.err
    assert "the shell" not in said.err


def test_folders_of_runs_that_the_shell_has_expanded_are_removed(expanded, tmp_path: Path) -> None:
    assert expanded("rm --yes runs/name1/*").code == 0
    assert not list(tmp_path.glob("runs/name1/2*"))
