"""A script that reads a word that was not typed."""

from __future__ import annotations

import sys

import pytest

from hpc_train.training.failures.failure_words import fix_of


def read_of_argv() -> float:
    return float(sys.argv[2])


def read_of_list(words: list[str]) -> str:
    return words[len(sys.argv)]


@pytest.mark.parametrize(("typed", "many"), [([], "no arguments"), (["0.1"], "1 argument")])
def test_what_was_given_is_told_with_where_it_is_typed(
    monkeypatch: pytest.MonkeyPatch, typed: list[str], many: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/s.py", *typed])
    with pytest.raises(IndexError) as caught:
        read_of_argv()
    said = f"the script was given {many}: they are typed behind --, as in s.py -- VALUE"
    assert fix_of(caught.value) == said


def test_of_another_list_nothing_is_said_of_arguments() -> None:
    with pytest.raises(IndexError) as caught:
        read_of_list(["a"])
    assert "arguments" not in fix_of(caught.value)
