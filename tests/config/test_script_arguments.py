"""Arguments of a script's argparse that are typed in another program's way."""

from __future__ import annotations

import ast

import pytest

from hpc_train.config.scripts.script_arguments import refused_arguments

SCRIPT = """\
import argparse
p = argparse.ArgumentParser()
p.add_argument("--data", required=True)
p.add_argument("--lr", type=float)
p.add_argument("--batch-size", type=int)
p.add_argument("overrides", nargs="{}")
args = p.parse_args()
"""
NONE = SCRIPT.replace('p.add_argument("overrides", nargs="{}")\n', "")


def hint(text: str, *words: str) -> str:
    return refused_arguments(ast.parse(text), words)[1]


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["data=.", "lr=0.1"], "write --data=. --lr=0.1 behind --"),
        (["--data", ".", "lr=0.1"], "write --data . --lr=0.1 behind --"),
        (["--data=.", "batch_size=8"], "write --data=. --batch-size=8 behind --"),
        (["data=a b"], "write '--data=a b' behind --"),
    ],
)
def test_pairs_without_dashes_are_told_with_them(words: list[str], fix: str) -> None:
    assert hint(NONE, *words) == fix
    assert hint(NONE, *(it.strip("'") for it in fix.split()[1:2])) != fix


@pytest.mark.parametrize("words", [["data=.", "rate=0.1"], ["data=.", "lr=high"], ["data"]])
def test_what_would_be_refused_again_is_not_told(words: list[str]) -> None:
    assert not hint(NONE, *words).startswith("write --data")


def test_a_script_that_takes_them_is_left_alone() -> None:
    takes = SCRIPT.format("*")
    assert refused_arguments(ast.parse(takes), ["--data", ".", "lr=0.1"]) == ("", "")
