"""What torch gives as a pair, values and indices, where one tensor was meant: `torch.max(x, 1)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of

_PAIR = re.compile(r"torch\.return_types\.(?P<name>\w+)")
_GIVE_PAIRS = (
    *("max", "min", "sort", "topk", "median", "nanmedian", "mode", "kthvalue"),
    *("cummax", "cummin"),
)
_AS_INDICES = {"max": "argmax", "min": "argmin", "sort": "argsort"}


def pair_for_tensor(error: BaseException) -> str:
    """What to write; empty where the error is of something else."""
    if not isinstance(error, AttributeError | TypeError):
        return ""
    found = _PAIR.search(str(error))
    is_compared = isinstance(error, AttributeError) and type(error.obj) is bool
    line = failing_line(error) if found or is_compared else None
    if line is None:
        return ""
    frame, nodes = line
    if is_compared:
        sides = _compared(nodes)
        told = {*_of_calls([it for it in sides if _is_of_tensor(it, frame)])}
        told = told or {*_of_names(sides, frame)}
    else:
        told = {*_of_calls(nodes)} or {*_of_names(nodes, frame)}
    return told.pop() if len(told) == 1 else ""


def _compared(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """What stands on the two sides of ==, which gives one truth for a pair."""
    return [side for it in nodes if isinstance(it, ast.Compare) for side in _sides(it)]


def _is_of_tensor(node: ast.expr, frame: FrameType) -> bool:
    """Whether it is torch's function, or a method of a tensor."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    return ast.unparse(owner) == "torch" or shape_of(value_of(owner, frame)) is not None


def _sides(node: ast.Compare) -> list[ast.expr]:
    return [node.left, *node.comparators]


def _of_calls(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for call in nodes:
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        name, owner = call.func.attr, call.func.value
        is_torchs = ast.unparse(owner) == "torch"
        given = [*call.args[is_torchs:], *(it for it in call.keywords if it.arg == "dim")]
        if name not in _GIVE_PAIRS or (not given and name in ("max", "min", "median")):
            continue
        yield _told(ast.unparse(call), _as_indices(call, name, owner, is_torchs=is_torchs))


def _as_indices(call: ast.Call, name: str, owner: ast.expr, *, is_torchs: bool) -> str:
    """`out.argmax(1)` of `torch.max(out, 1)`; empty where nothing short says it."""
    if name not in _AS_INDICES:
        return ""
    of = call.args[0] if is_torchs and call.args else owner
    rest = [*map(ast.unparse, call.args[is_torchs:])]
    rest += [f"{it.arg}={ast.unparse(it.value)}" for it in call.keywords if it.arg]
    written = ast.unparse(of)
    written = written if re.fullmatch(r"[\w.]+|[\w.]+\(.*\)", written) else f"({written})"
    return f"{written}.{_AS_INDICES[name]}({', '.join(rest)})"


def _of_names(nodes: Sequence[ast.AST], frame: FrameType) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and _is_pair(value_of(node, frame)):
            yield _told(node.id, "")


def _is_pair(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ == "torch.return_types" and kind.__name__ in _GIVE_PAIRS


def _told(written: str, indices: str) -> str:
    which = indices or f"{written}.indices"
    return f"{written} is a pair: write {which} for the indices, or {written}.values"
