"""Tensors that torch.cat is to put below each other, and that fit side by side."""

from __future__ import annotations

import ast
import re
from types import FrameType

from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of

_UNFIT = re.compile(r"Sizes of tensors must match except in dimension 0\. Expected size \d+")
_CALLS = ("torch.cat", "torch.concat", "torch.concatenate")


def joined(error: BaseException) -> str:
    """What to write; empty where the error is of something else, or they fit in no way."""
    if not isinstance(error, RuntimeError) or not _UNFIT.match(str(error)):
        return ""
    frame, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and ast.unparse(it.func) in _CALLS]
    if frame is None or len(calls) != 1 or not calls[0].args:
        return ""
    parts = calls[0].args[0]
    if not isinstance(parts, ast.List | ast.Tuple):
        return ""
    rows = {_rows(it, frame) for it in parts.elts}
    if len(rows) != 1 or None in rows:
        return ""
    write = f"{ast.unparse(calls[0].func)}({ast.unparse(parts)}, dim=1)"
    return f"all of them have {rows.pop()} rows: write {write} to put them side by side"


def _rows(node: ast.expr, frame: FrameType) -> int | None:
    """Of `x`, and of `x[:, :8]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        first = node.slice.elts[0]
        is_all = isinstance(first, ast.Slice) and not (first.lower or first.upper or first.step)
        return _rows(node.value, frame) if is_all else None
    shape = shape_of(value_of(node, frame))
    return shape[0] if shape and len(shape) == 2 else None
