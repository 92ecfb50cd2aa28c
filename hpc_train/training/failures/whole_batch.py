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

from hpc_train.training.failures.frame_text import is_users, nodes_at, nodes_of, shown_file
from hpc_train.training.failures.frame_values import value_of
from hpc_train.training.failures.layers import frames_of
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.step_data import shown_source
from hpc_train.training.failures.users_method import class_text, lines_of

# What is said where a text came in a tensor's place, or a dict could not be taken apart: whether
# one was, the values at the line tell.
_OF_KEYS = re.compile(r"\bstr(?:ing)?\b|numpy\.str_|values to unpack")
# Names, and keys, of what a loss is held against.
_LABELS = re.compile(r"y|ys|labels?|targets?|class(?:es)?|gt|truth", re.IGNORECASE)
_OF_WHOLE = re.compile(r"must be (?:a )?Tensors?, not (?P<kind>\w+)")
# What is said of a tuple of texts that is compared with a tensor, or asked for what a tensor has.
_OF_TUPLE = re.compile(
    r"'(?P<kind>bool|tuple|list)' object has no attribute '(?:float|long|int|to|cuda|cpu|shape|size"
    r"|dim|ndim|view|reshape|squeeze|unsqueeze|sum|mean|all|any|detach|device|dtype|numel|argmax)'"
)
_LABEL = re.compile(r"[^/\n]{1,40}")  # no path, and no sentence
_MOST_KEYS = 8
_MOST_LINES = 3
_ERRORS = (TypeError, AttributeError, ValueError, RuntimeError)
_MOST_TEXTS = 3


def taken_dict(error: BaseException) -> PlacedFix:
    """The line that took the keys of a dict for its values.

    Returns:
        The place is that of the line that took its keys.
    """
    if not isinstance(error, _ERRORS) or not _OF_KEYS.search(str(error)):
        return PlacedFix()
    told = (_taken_apart(*it) for it in reversed(_frames(error)))
    return next((it for it in told if it.fix), PlacedFix())


def of_batch(error: BaseException) -> str:
    """What to write for the values of a dict; empty where no dict was taken apart."""
    if not isinstance(error, _ERRORS):
        return ""
    if taken := taken_dict(error).fix:
        return taken
    frames, said = _frames(error), str(error)
    found = _OF_WHOLE.search(said)
    of_tuple = _OF_TUPLE.search(said) if isinstance(error, AttributeError) else None
    if of_tuple or (found and found["kind"] in ("tuple", "list")):
        source, kind = shown_source(frames_of(error)), of_tuple["kind"] if of_tuple else ""
        return next(filter(None, (_of_texts(*it, kind, source) for it in reversed(frames))), "")
    if found and frames:
        return next(filter(None, (_given_whole(*it, found["kind"]) for it in reversed(frames))), "")
    return ""


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    frames = traceback.walk_tb(error.__traceback__)
    return [it for it in frames if is_users(it[0].f_code.co_filename)]


def _taken_apart(frame: FrameType, line: int) -> PlacedFix:
    """Of `x, y = batch` in what the frame has done so far, where batch is a dict."""
    found = PlacedFix()
    for node in nodes_of(frame):
        if not isinstance(node, ast.Assign) or node.lineno > line:
            continue
        target, value = node.targets[0], _value(node.value, frame)
        if not isinstance(target, ast.Tuple) or not _has_names(value):
            continue
        if not all(isinstance(it, ast.Name) for it in target.elts):
            continue
        names, batch = [ast.unparse(it) for it in target.elts], ast.unparse(node.value)
        is_this = node.lineno <= line <= (node.end_lineno or line)
        if is_this or any(_is_key(frame.f_locals.get(it), value) for it in names):
            file = frame.f_code.co_filename
            also = _elsewhere(frame, ast.unparse(node), node.lineno)
            said = (
                f"{_told(batch, value)}, and {shown_file(file)}:{node.lineno}{also} takes its keys"
            )
            fix = f"{said}: write {_from_names(names, batch, list(value))}"
            found = PlacedFix(f"{file}:{node.lineno}", fix)
    return found


def _elsewhere(frame: FrameType, text: str, line: int) -> str:
    """The other lines of the class that take it apart so, as of another step."""
    owner = frame.f_locals.get("self")
    lines, first = lines_of(type(owner)) if owner is not None else ([], 0)
    definition = class_text(lines, first) if lines else None
    found = sorted(
        node.lineno
        for node in (ast.walk(definition) if definition else ())
        if isinstance(node, ast.Assign) and node.lineno != line and ast.unparse(node) == text
    )
    if not found or line not in range(first, first + len(lines)):
        return ""
    return f" (also line{'s' if found[1:] else ''} {', '.join(map(str, found[:_MOST_LINES]))})"


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
    elif len(names) == len(keys):
        keys = _labels_where(names, keys)
    if len(names) != len(keys):
        return _parts(batch, keys)
    taken = [f'{batch}["{it}"]' for it in keys]
    return f"{', '.join(names)} = {', '.join(taken)}"


def _labels_where(names: Sequence[str], keys: Sequence[str]) -> Sequence[str]:
    """The keys in their order, and the one of the labels at the name that is meant for them."""
    name = [it for it in names if _LABELS.fullmatch(it)]
    key = [it for it in keys if _LABELS.fullmatch(it)]
    if len(name) != 1 or len(key) != 1:
        return keys
    ordered = [it for it in keys if it != key[0]]
    ordered.insert(list(names).index(name[0]), key[0])
    return ordered


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
