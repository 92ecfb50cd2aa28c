"""An `assert` without words: what it asks, and the values that do not fit."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from hpc_train.training.failures.frame_text import nodes_at
from hpc_train.training.failures.frame_values import value_of

_THERE = ("os.path.exists", "os.path.isfile", "os.path.isdir", "exists", "isfile", "isdir")
_OF_PATH = ("exists", "is_file", "is_dir")  # methods of pathlib's
_MOST_ASKED, _MOST_SHOWN = 120, 60  # characters
_PLAIN = (str, int, float, bool, type(None))


def asserted(error: BaseException) -> str:
    """`assert os.path.exists(path)`; empty where the error has words, or the text is not there."""
    found = _assertion(error)
    if found is None:
        return ""
    asked = ast.unparse(found[1].test)
    return f"assert {asked if len(asked) <= _MOST_ASKED else f'{asked[:_MOST_ASKED]}...'}"


def unasserted(error: BaseException) -> str:
    """What does not fit, and what to do where that is known; empty where no value tells it."""
    found = _assertion(error)
    if found is None:
        return ""
    frame, test = found[0], found[1].test
    return _of_path(test, frame) or _of_version(test, frame) or "; ".join(_values(test, frame))


def _assertion(error: BaseException) -> tuple[FrameType, ast.Assert] | None:
    if not isinstance(error, AssertionError) or str(error).strip():
        return None
    frames = [*traceback.walk_tb(error.__traceback__)]
    if not frames:
        return None
    frame, line = frames[-1]
    asserts = [it for it in nodes_at(frame, line) if isinstance(it, ast.Assert)]
    return (frame, asserts[0]) if len(asserts) == 1 else None


def _of_path(test: ast.expr, frame: FrameType) -> str:
    if not isinstance(test, ast.Call):
        return ""
    asked: ast.expr | None = None
    if ast.unparse(test.func) in _THERE and test.args:
        asked = test.args[0]
    elif isinstance(test.func, ast.Attribute) and test.func.attr in _OF_PATH:
        asked = test.func.value
    value = asked.value if isinstance(asked, ast.Constant) else None
    if asked is not None and value is None:
        value = value_of(asked, frame)
    if not isinstance(value, str | Path):
        return ""
    path = Path(value)
    if path.exists():  # of another kind
        return f"{path} is no {'folder' if path.is_file() else 'file'}"
    where = "" if path.is_absolute() else f" (it was looked for in {Path.cwd()})"
    return f"{path} is not there{where}: bring it there, or name another"


def _of_version(test: ast.expr, frame: FrameType) -> str:
    """Of `timm.__version__ == "0.3.2"`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return ""
    left, wanted = test.left, test.comparators[0]
    if not isinstance(left, ast.Attribute) or left.attr != "__version__":
        return ""
    has, name = value_of(left, frame), ast.unparse(left.value)
    number = wanted.value if isinstance(wanted, ast.Constant) else None
    if not isinstance(has, str) or not isinstance(number, str):
        return ""
    return f"{name} {has} is here: pip install {name}=={number}, or leave that line out"


def _values(test: ast.expr, frame: FrameType) -> Iterator[str]:
    """Of names that are compared."""
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    for side in sides:
        value = value_of(side, frame) if isinstance(side, ast.Name | ast.Attribute) else None
        if value is not None and isinstance(value, _PLAIN) and len(repr(value)) <= _MOST_SHOWN:
            yield f"{ast.unparse(side)} is {value!r} there"
