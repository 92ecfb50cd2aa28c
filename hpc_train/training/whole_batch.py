"""A batch that is a dict, and was taken apart, or given to a layer, as if it were a tuple.

Python gives the keys of a dict that is taken apart, so that the error comes later, of a text.
"""

from __future__ import annotations

import ast
import itertools
import re
import traceback
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.frame_text import is_users, nodes_at, nodes_of, shown_file

# What is said where a text came in a tensor's place, or a dict could not be taken apart.
_OF_KEYS = re.compile(
    r"must be (?:a )?Tensors?, not str\b|'str' object has no attribute"
    r"|values to unpack|can only concatenate str|unsupported operand type.*'str'"
    r"|not supported between instances of .*'str'|can't multiply sequence"
    r"|must be [\w. |,]+, not str\b|descriptor .* 'str' object"
)
_OF_WHOLE = re.compile(r"must be (?:a )?Tensors?, not (?P<kind>\w+)")
_MOST_KEYS = 8
_MOST_TEXTS = 3


def of_batch(error: BaseException) -> str:
    """What to write for the values of a dict; empty where no dict was taken apart."""
    if not isinstance(error, TypeError | AttributeError | ValueError):
        return ""
    said = str(error)
    frames = [
        it for it in traceback.walk_tb(error.__traceback__) if is_users(it[0].f_code.co_filename)
    ]
    if _OF_KEYS.search(said):
        return next(filter(None, (_taken_apart(*it) for it in reversed(frames))), "")
    found = _OF_WHOLE.search(said)
    if found and frames and found["kind"] in ("tuple", "list"):
        return next(filter(None, (_of_texts(*it) for it in reversed(frames))), "")
    if found and frames:
        return next(filter(None, (_given_whole(*it, found["kind"]) for it in reversed(frames))), "")
    return ""


def _taken_apart(frame: FrameType, line: int) -> str:
    """Of `x, y = batch` in what the frame has done so far, where batch is a dict."""
    found = ""
    for node in nodes_of(frame):
        if not isinstance(node, ast.Assign) or node.lineno > line:
            continue
        target, value = node.targets[0], _value(node.value, frame)
        if not isinstance(target, ast.Tuple) or not _has_names(value):
            continue
        if not all(isinstance(it, ast.Name) for it in target.elts):
            continue
        names = [ast.unparse(it) for it in target.elts]
        is_this = node.lineno <= line <= (node.end_lineno or line)
        if is_this or any(_is_key(frame.f_locals.get(it), value) for it in names):
            place = f"{shown_file(frame.f_code.co_filename)}:{node.lineno}"
            found = f"{_told(ast.unparse(node.value), value)}, and {place} takes its keys: write "
            found += _from_names(names, ast.unparse(node.value), list(value))
    return found


def _given_whole(frame: FrameType, line: int, kind: str) -> str:
    """Of `self.net(batch)`, where batch is a dict."""
    for node in nodes_at(frame, line):
        for given in node.args if isinstance(node, ast.Call) else ():
            value = _value(given, frame)
            if _has_names(value) and type(value).__name__ == kind:
                name = ast.unparse(given)
                return f"{_told(name, value)}: write {_parts(name, list(value))}"
    return ""


def _of_texts(frame: FrameType, line: int) -> str:
    """Of `cross_entropy(out, y)`, where the data set gives each label as a text."""
    for node in nodes_at(frame, line):
        for given in node.args if isinstance(node, ast.Call) else ():
            value = _value(given, frame)
            if not isinstance(value, tuple | list) or not value:
                continue
            if all(type(it) is str for it in value):
                texts = sorted(set(value))[:_MOST_TEXTS]
                more = ", ..." if len(set(value)) > len(texts) else ""
                has = f"{ast.unparse(given)} has the texts {', '.join(map(repr, texts))}{more}"
                numbers = ", ".join(f'"{it}": {number}' for number, it in enumerate(texts))
                as_number = f"as of {{{numbers}{more}}}"
                return f"{has}: have the data set give a number for each, {as_number}"
    return ""


def _told(name: str, value: Mapping[str, Any]) -> str:
    keys = [*itertools.islice(value, _MOST_KEYS)]
    many = "s" if len(value) > 1 else ""
    return f"{name} is a dict with the key{many} {', '.join(map(repr, keys))}"


def _parts(name: str, keys: Sequence[str]) -> str:
    parts = [f'{name}["{it}"]' for it in keys[:2]]
    return f"{' or '.join(parts)}{', ...' if len(keys) > 2 else ''} for the value that is meant"


def _from_names(names: Sequence[str], batch: str, keys: Sequence[str]) -> str:
    """`x, y = batch["x"], batch["y"]`: by the names where they are keys, else in their order."""
    if set(names) <= set(keys):
        keys = names
    if len(names) != len(keys):
        return _parts(batch, keys)
    taken = [f'{batch}["{it}"]' for it in keys]
    return f"{', '.join(names)} = {', '.join(taken)}"


def _is_key(value: object, held: Mapping[str, Any]) -> bool:
    return type(value) is str and value in held


def _has_names(value: object) -> bool:
    """Whether it is a dict, or the like, whose keys are all texts."""
    return isinstance(value, Mapping) and bool(value) and all(type(it) is str for it in value)


def _value(node: ast.expr, frame: FrameType) -> Any:
    return frame.f_locals.get(node.id) if isinstance(node, ast.Name) else None
