"""`torch.max(x, 1)` where a tensor is meant: it gives the values and their indices."""

from __future__ import annotations

import ast
import re
from types import FrameType
from typing import Any

from hpc_train.training.frame_values import failing_line, value_of

_PAIR = re.compile(r"torch\.return_types\.(\w+)")
_HOME = "torch.return_types"
_INDEX = {"max": "argmax", "min": "argmin"}
# Those of torch's that give `values` and `indices`.
_KINDS = (*_INDEX, "sort", "topk", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin")


def pair_result(error: BaseException) -> str:
    """What to write in place of the pair; empty where the error is of anything else."""
    found = _PAIR.search(str(error))
    is_compared = isinstance(error, AttributeError) and isinstance(error.obj, bool)
    if not isinstance(error, AttributeError | TypeError) or not (found or is_compared):
        return ""
    at = failing_line(error)
    for node in at[1] if at else ():
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node]
        for side in sides if found or len(sides) > 1 else ():
            if at and (fix := _of_side(side, at[0])):
                return fix
    kind = found[1] if found else ""
    return f"torch.{kind} gives values and indices: take one of the two" if kind in _KINDS else ""


def _of_side(side: ast.AST, frame: FrameType) -> str:
    if isinstance(side, ast.Name | ast.Attribute):
        value = value_of(side, frame)
        return _of_name(ast.unparse(side), value) if type(value).__module__ == _HOME else ""
    called = side.func if isinstance(side, ast.Call) else None
    if not isinstance(side, ast.Call) or not isinstance(called, ast.Attribute):
        return ""
    if called.attr not in _INDEX:
        return ""
    is_function = ast.unparse(called.value) == "torch"
    given = [*([] if is_function else [called.value]), *side.args]
    named = [ast.unparse(it) for it in side.keywords if it.arg in ("dim", "axis", "keepdim")]
    if len(given) == 1 and not named:
        return ""  # of a whole tensor it is a number
    x, *rest = map(ast.unparse, given)
    x = x if re.fullmatch(r"[\w.]+|[\w.]+\(.*\)", x) else f"({x})"
    index = f"{x}.{_INDEX[called.attr]}({', '.join([*rest, *named])})"
    gives = f"{ast.unparse(side)} gives values and indices"
    return f"{gives}: write {index} for the indices, or .values behind it"


def _of_name(name: str, value: Any) -> str:
    if type(value).__name__ not in _KINDS:
        return ""
    is_pair = f"{name} is values and indices (torch.{type(value).__name__})"
    return f"{is_pair}: write {name}.indices, or {name}.values"
