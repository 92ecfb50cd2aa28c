"""A batch that is a dict, and was taken apart, or given to a layer, as if it were a tuple.

Python gives the keys of a dict that is taken apart, so that the error comes later, of a text.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

# What is said where a text came in a tensor's place, or a dict could not be taken apart.
_OF_KEYS = re.compile(
    r"must be (?:a )?Tensors?, not str\b|'str' object has no attribute"
    r"|values to unpack|can only concatenate str|unsupported operand type.*'str'"
    r"|not supported between instances of .*'str'|can't multiply sequence"
    r"|must be [\w. |,]+, not str\b|descriptor .* 'str' object"
)
_OF_WHOLE = re.compile(r"must be (?:a )?Tensors?, not (?P<kind>\w+)")
_INSTALLED = ("site-packages", "dist-packages")
_MOST_KEYS = 8


def of_batch(error: BaseException) -> str:
    """What to write for the values of a dict; empty where no dict was taken apart."""
    if not isinstance(error, TypeError | AttributeError | ValueError):
        return ""
    said = str(error)
    frames = [it for it in traceback.walk_tb(error.__traceback__) if _is_users(it[0])]
    if _OF_KEYS.search(said):
        return next(filter(None, (_taken_apart(*it) for it in reversed(frames))), "")
    found = _OF_WHOLE.search(said)
    if found and frames:
        return next(filter(None, (_given_whole(*it, found["kind"]) for it in reversed(frames))), "")
    return ""


def _is_users(frame: FrameType) -> bool:
    return not any(it in _INSTALLED for it in Path(frame.f_code.co_filename).parts)


def _taken_apart(frame: FrameType, line: int) -> str:
    """Of `x, y = batch` in what the frame has done so far, where batch is a dict."""
    found = ""
    for node in _nodes(frame):
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
            place = f"{_shown(frame.f_code.co_filename)}:{node.lineno}"
            found = f"{_told(ast.unparse(node.value), value)}, and {place} takes its keys: write "
            found += _from_names(names, ast.unparse(node.value), list(value))
    return found


def _given_whole(frame: FrameType, line: int, kind: str) -> str:
    """Of `self.net(batch)`, where batch is a dict."""
    for node in _nodes(frame):
        if not isinstance(node, ast.Call) or not node.lineno <= line <= (node.end_lineno or line):
            continue
        for given in node.args:
            value = _value(given, frame)
            if _has_names(value) and type(value).__name__ == kind:
                name = ast.unparse(given)
                return f"{_told(name, value)}: write {_parts(name, list(value))}"
    return ""


def _told(name: str, value: Mapping[str, Any]) -> str:
    keys = [*itertools.islice(value, _MOST_KEYS)]
    many = "s" if len(value) > 1 else ""
    return f"{name} is a dict with the key{many} {', '.join(map(repr, keys))}"


def _parts(name: str, keys: Sequence[str]) -> str:
    parts = [f'{name}["{it}"]' for it in keys[:2]]
    return f"{' or '.join(parts)}{', ...' if len(keys) > 2 else ''} for the value that is meant"


def _from_names(names: Sequence[str], batch: str, keys: Sequence[str]) -> str:
    """`x, y = batch["x"], batch["y"]`: by the names where they are keys, else in the keys' order."""
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


def _nodes(frame: FrameType) -> Iterator[ast.AST]:
    """What the function of a frame does, by its file's text."""
    code = frame.f_code
    text = "".join(linecache.getlines(code.co_filename))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a notebook's cell with a magic, or a file that has changed
        return
    for node in ast.walk(tree):
        is_one = isinstance(node, ast.FunctionDef) and node.name == code.co_name
        first = min([it.lineno for it in getattr(node, "decorator_list", [])], default=0)
        if is_one and code.co_firstlineno in (first, getattr(node, "lineno", 0)):
            yield from ast.walk(node)
        elif isinstance(node, ast.Module) and code.co_name == "<module>":
            yield from ast.walk(node)


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
