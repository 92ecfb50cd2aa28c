"""A batch that is a dict, and was taken apart, or given to a layer, as if it were a tuple.

Python gives the keys of a dict that is taken apart, so that the error comes later, of a text.
"""

from __future__ import annotations

import ast
import itertools
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.frame_text import is_users, nodes_at, nodes_of, shown_file
from hpc_train.training.frame_values import value_of
from hpc_train.training.layers import frames_of
from hpc_train.training.step_data import shown_source

# What is said where a text came in a tensor's place, or a dict could not be taken apart.
_OF_KEYS = re.compile(
    r"must be (?:a )?Tensors?, not str\b|'str' object has no attribute"
    r"|values to unpack|can only concatenate str|unsupported operand type.*'str'"
    r"|not supported between instances of .*'str'|can't multiply sequence"
    r"|must be [\w. |,]+, not str\b|descriptor .* 'str' object"
)
_OF_WHOLE = re.compile(r"must be (?:a )?Tensors?, not (?P<kind>\w+)")
# What is said of a tuple of texts that is compared with a tensor, or asked for what a tensor has.
_OF_TUPLE = re.compile(
    r"'(?P<kind>bool|tuple|list)' object has no attribute '(?:float|long|int|to|cuda|cpu|shape|size"
    r"|dim|ndim|view|reshape|squeeze|unsqueeze|sum|mean|all|any|detach|device|dtype|numel|argmax)'"
)
_LABEL = re.compile(r"[^/\n]{1,40}")  # no path, and no sentence
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
    of_tuple = _OF_TUPLE.search(said) if isinstance(error, AttributeError) else None
    if of_tuple or (found and found["kind"] in ("tuple", "list")):
        source, kind = shown_source(frames_of(error)), of_tuple["kind"] if of_tuple else ""
        return next(filter(None, (_of_texts(*it, kind, source) for it in reversed(frames))), "")
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


def _of_texts(frame: FrameType, line: int, kind: str, source: str) -> str:
    """Of `cross_entropy(out, y)` and `out.argmax(1) == y`, where each label is a text.

    Args:
        frame: One of the user's.
        line: The one that it has come to.
        kind: bool of a comparison; tuple or list of what was asked for a tensor's attribute.
        source: The method of the data set that gives the labels, as far as it is known.
    """
    for node in nodes_at(frame, line):
        for given in _tensors_meant(node, kind, frame):
            value = _part(given, frame)
            if not _are_texts(value) or (kind in ("tuple", "list") and not _are_labels(value)):
                continue
            texts = sorted(set(value))[:_MOST_TEXTS]
            more = ", ..." if len(set(value)) > len(texts) else ""
            has = f"{ast.unparse(given)} has the texts {', '.join(map(repr, texts))}{more}"
            numbers = ", ".join(f'"{it}": {number}' for number, it in enumerate(texts))
            of = source or "the data set"
            return f"{has}: have {of} give a number for each, as of {{{numbers}{more}}}"
    return ""


def _tensors_meant(node: ast.AST, kind: str, frame: FrameType) -> Iterator[ast.expr]:
    """What an expression takes as tensors: arguments, one side, and whose attribute it asks."""
    if isinstance(node, ast.Compare) and kind == "bool" and len(node.comparators) == 1:
        sides = (node.left, node.comparators[0])
        values = [it.value if isinstance(it, ast.Constant) else _part(it, frame) for it in sides]
        if sum(isinstance(it, str | tuple | list) for it in values) == 1:
            yield from sides
    elif isinstance(node, ast.Call) and kind != "bool":
        yield from (*node.args, *(it.value for it in node.keywords))
    elif isinstance(node, ast.Attribute) and kind in ("tuple", "list"):
        yield node.value


def _are_texts(value: Any) -> bool:
    is_several = isinstance(value, tuple | list) and bool(value)
    return is_several and all(type(it) is str for it in value)


def _are_labels(value: Sequence[str]) -> bool:
    """Whether they repeat, and are no paths and no sentences."""
    return len(set(value)) < len(value) and all(map(_LABEL.fullmatch, value))


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


def _part(node: ast.expr, frame: FrameType) -> Any:
    """Of `y`, `self.y`, `batch["y"]` and `batch[1]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return value_of(node, frame)
    held, key = value_of(node.value, frame), node.slice.value
    if type(held) is dict:
        return held.get(key)
    is_there = type(held) in (tuple, list) and type(key) is int and key < len(held)
    return held[key] if is_there else None
