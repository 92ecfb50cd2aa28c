"""An `assert` without words is told by what it asks, and by the values that do not fit."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.training.failures.failure_words import fix_of, said_by

timm = types.SimpleNamespace(__version__="1.0.15")


def exists(path: Any) -> None:
    assert os.path.exists(path)  # noqa: PTH110 - as scripts have it


def is_folder(path: Any) -> None:
    assert Path(path).is_dir()


def is_file(path: Any) -> None:
    assert path.is_file()


def version(_: Any) -> None:
    assert timm.__version__ == "0.3.2"


def compared(width: Any, heads: int = 3) -> None:
    assert width == heads


def divided(width: Any, heads: int = 3) -> None:
    assert width % heads == 0


def with_words(width: Any) -> None:
    assert width == 1, "one alone"


def raised(_: Any) -> None:
    raise AssertionError


@pytest.mark.parametrize(
    ("call", "value", "said", "fix"),
    [
        (exists, "a/b.txt", "assert os.path.exists(path)", "a/b.txt is not there (it was looked"),
        (exists, "/no/b", "assert os.path.exists(path)", "/no/b is not there: bring it there, or"),
        (is_file, Path("/no"), "assert path.is_file()", "/no is not there: bring"),
        (is_file, Path("/"), "assert path.is_file()", "/ is no file"),
        (is_folder, "/no", "assert Path(path).is_dir()", ""),
        (
            version,
            0,
            "assert timm.__version__ == '0.3.2'",
            "timm 1.0.15 is here: pip install timm==0.3.2, or leave that line out",
        ),
        (compared, 4, "assert width == heads", "width is 4 there; heads is 3 there"),
        (divided, 4, "assert width % heads == 0", ""),
        (with_words, 4, "one alone", ""),
        (raised, 4, "", ""),
    ],
)
def test_what_is_asked_is_told_with_what_does_not_fit(
    call: Callable[[Any], None], value: Any, said: str, fix: str
) -> None:
    try:
        call(value)
    except AssertionError as caught:
        error = caught
    if said and call is not with_words:
        error.args = ()  # the words of pytest
    words = said_by(error)
    assert words.startswith(f"AssertionError: {said}" if said else "AssertionError")
    assert fix_of(error).startswith(fix)
    assert bool(fix_of(error)) is bool(fix)
