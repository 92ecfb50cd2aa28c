"""A whole batch that a line of the user's gives its model, which takes one tensor of it.

The error comes out of the model's forward, where nothing is to be changed.
"""

from __future__ import annotations

import ast
import copy
import inspect
import re
import traceback
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_at, nodes_of
from hpc_train.training.failures.frame_values import shape_of, value_of
from hpc_train.training.failures.placed_fix import PlacedFix

_OF_WHOLE = re.compile(
    r"must be (?:a )?Tensors?, not (?P<kind>\w+)$"
    r"|invalid combination of arguments - got \((?P<first>\w+)"  # as of a convolution
)
_LOADS = re.compile(r"load|data|\bdl\b", re.IGNORECASE)
_MOST = 6  # parts that are told one by one
_FORWARD = "forward"
_PAIRS = ("LSTM", "GRU", "RNN", "MultiheadAttention")  # torch.nn's that give one, the output first


def whole_given(error: BaseException) -> PlacedFix:
    """Of a batch of several values in a tensor's place; a dict without one is told elsewhere.

    Returns:
        The place is that of the call that gives it.
    """
    of = _taken(error)
    if of is None:
        return PlacedFix()
    frames = [
        it for it in traceback.walk_tb(error.__traceback__) if is_users(it[0].f_code.co_filename)
    ]
    callers = [it for it in frames if it[0].f_code.co_name != _FORWARD]
    if frames and (made := _of_pair(of, *frames[-1])):
        return made
    if not callers:
        return PlacedFix()
    frame, line = callers[-1]
    calls = [it for it in nodes_at(frame, line) if isinstance(it, ast.Call)]
    given = [(call, name) for call in calls if (name := _name_of(call, of, frame))]
    if len(given) != 1 or not _is_whole(given[0][1], frame):
        return PlacedFix()
    call, name = given[0]
    write = _written(call, name, of, frame, line)
    if not write:
        return PlacedFix()
    said = f"{ast.unparse(call)} is given the whole {_word(name)}, {_told(of)}"
    return PlacedFix(f"{frame.f_code.co_filename}:{line}", f"{said}: write {write}")


def _taken(error: BaseException) -> Any:
    """The list, tuple or dict that was no tensor; None of another error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, AttributeError):
        held = [error.obj]
    elif isinstance(error, TypeError) and (found := _OF_WHOLE.search(str(error))) and frames:
        kind = found["kind"] or found["first"]
        held = [it for it in frames[-1].f_locals.values() if type(it).__name__ == kind]
    else:
        return None
    whole = [
        it
        for it in held
        if isinstance(it, list | tuple | Mapping) and it and "torch." not in type(it).__module__
    ]
    return whole[0] if len({*map(id, whole)}) == 1 else None


def _of_pair(of: Any, frame: FrameType, line: int) -> PlacedFix | None:
    """Of `out = self.lstm(x)`, where out is given to another layer."""
    stored = [
        it
        for it in nodes_of(frame)
        if isinstance(it, ast.Assign) and it.lineno < line and isinstance(it.value, ast.Call)
    ]
    for it in reversed(stored):
        name, call = it.targets[0], it.value
        if not isinstance(name, ast.Name) or frame.f_locals.get(name.id) is not of:
            continue
        layer = value_of(call.func, frame) if isinstance(call, ast.Call) else None
        kind = type(layer).__name__
        if kind not in _PAIRS or not type(layer).__module__.startswith("torch.nn."):
            return None
        said = f"{ast.unparse(call)}, of an nn.{kind}, gives a pair"
        write = f"write {name.id}, _ = {ast.unparse(call)}"
        return PlacedFix(f"{frame.f_code.co_filename}:{it.lineno}", f"{said}: {write}")
    return None


def _name_of(call: ast.Call, of: Any, frame: FrameType) -> str:
    """The name by which a call is given it; empty where it is not."""
    given = [*call.args, *(it.value for it in call.keywords)]
    names = [it.id for it in given if isinstance(it, ast.Name)]
    return next((it for it in names if frame.f_locals.get(it) is of), "")


def _is_whole(name: str, frame: FrameType) -> bool:
    """Whether it is a batch as it came: of a step, by its name, or of a loop over a loader."""
    code = frame.f_code
    nodes = list(nodes_of(frame))
    stored = [
        it
        for it in nodes
        if isinstance(it, ast.Name) and it.id == name and not isinstance(it.ctx, ast.Load)
    ]
    if name in code.co_varnames[: code.co_argcount]:
        is_of_step = code.co_name.endswith("_step") and code.co_varnames[1:2] == (name,)
        return not stored and (is_of_step or name == "batch")
    loops = [it for it in nodes if isinstance(it, ast.For) and _LOADS.search(ast.unparse(it.iter))]
    looped = {id(name) for it in loops for name in _targets(it.target)}
    return len(stored) == 1 and id(stored[0]) in looped


def _targets(target: ast.expr) -> Sequence[ast.expr]:
    """`batch` of `for batch in loader`, and of `for number, batch in enumerate(loader)`."""
    return target.elts[1:] if isinstance(target, ast.Tuple) else [target]


def _first_field(kind: type) -> str:
    """Of a named tuple, which is made by its fields."""
    try:
        fields = [*inspect.signature(kind).parameters] if issubclass(kind, tuple) else []
    except (TypeError, ValueError):  # one of C's
        return ""
    return fields[0] if fields and hasattr(kind, fields[0]) else ""


def _written(call: ast.Call, name: str, of: Any, frame: FrameType, line: int) -> str:
    """`x, y = batch and self(x)`; empty where its first value is no tensor."""
    if isinstance(of, Mapping):
        return _by_key(call, name, of)
    if shape_of(of[0]) is None:
        return ""
    if field := _first_field(type(of)):
        return _with(call, name, f"{name}.{field}")
    if apart := _apart_above(name, len(of), frame, line):
        return _with(call, name, apart)
    names = {1: "(x,)", 2: "x, y"}.get(len(of), "x, *_")
    return f"{names} = {name} and {_with(call, name, 'x')}"


def _by_key(call: ast.Call, name: str, of: Mapping[Any, Any]) -> str:
    keys = [it for it in of if type(it) is str and shape_of(of[it]) is not None]
    if len(keys) < len(of) or len(keys) > _MOST:
        return ""
    written = [_with(call, name, f'{name}["{it}"]').replace("'", '"') for it in keys[:2]]
    return f"{' or '.join(written)}{', ...' if len(keys) > 2 else ''}"


def _apart_above(name: str, parts: int, frame: FrameType, line: int) -> str:
    """`x` of a line above that has taken it apart, `x, y = batch`."""
    for it in nodes_of(frame):
        if not isinstance(it, ast.Assign) or it.lineno >= line or ast.unparse(it.value) != name:
            continue
        target = it.targets[0]
        if isinstance(target, ast.Tuple) and len(target.elts) == parts:
            first = target.elts[0]
            return first.id if isinstance(first, ast.Name) and first.id != "_" else ""
    return ""


def _with(call: ast.Call, name: str, other: str) -> str:
    """The call with another value in the place of a name among its arguments."""

    class Changed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(other, mode="eval").body if node.id == name else node

    changed = copy.deepcopy(call)
    changed.args = [Changed().visit(it) for it in changed.args]
    changed.keywords = [Changed().visit(it) for it in changed.keywords]
    return ast.unparse(changed)


def _word(name: str) -> str:
    return "batch" if name == "batch" else f"of {name}"


def _told(of: Any) -> str:
    """`a list of 2 tensors, [32, 16] and [32]`."""
    if isinstance(of, Mapping):
        return f"a dict with the key{'s' if len(of) > 1 else ''} {', '.join(map(repr, of))}"
    article = f"a {type(of).__name__} of {len(of)}"
    shapes = [shape_of(it) for it in of]
    if len(of) > _MOST or any(it is None for it in shapes):
        return f"{article} values"
    shown = [str([*it]) for it in shapes if it is not None]
    if len(shown) == 1:
        return f"{article} tensor, {shown[0]}"
    return f"{article} tensors, {', '.join(shown[:-1])} and {shown[-1]}"
