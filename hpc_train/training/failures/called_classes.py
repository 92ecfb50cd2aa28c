"""A class of torch.nn that a model keeps in self, and calls as if it were the layer."""

from __future__ import annotations

import ast
import inspect
import re
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_of, shown_file
from hpc_train.training.failures.frame_values import shape_of, value_of
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.users_method import class_text, lines_of

_OF = ("torch.nn.", "torchmetrics.")


def uncalled_class(error: BaseException) -> PlacedFix:
    """By a line that was executed: `self.loss(logits, y)` of `self.loss = nn.CrossEntropyLoss`.

    Returns:
        The place is that of the line that keeps it.
    """
    if not isinstance(error, RuntimeError | TypeError | ValueError | AttributeError):
        return PlacedFix()
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        if is_users(frame.f_code.co_filename):
            found = dict(_kept(frame, line, str(error)))
            if len(found) == 1:
                ((name, owner),) = found.items()
                return _told(name, owner)
    return PlacedFix()


def _kept(frame: FrameType, line: int, said: str) -> Iterator[tuple[str, Any]]:
    """Of the line that failed what is given a tensor; of others what the error is said of."""
    for call in (it for it in nodes_of(frame) if isinstance(it, ast.Call)):
        if not isinstance(call.func, ast.Attribute):
            continue
        kind, owner = value_of(call.func, frame), value_of(call.func.value, frame)
        if not isinstance(kind, type) or not hasattr(kind, "named_modules"):
            continue
        if not kind.__module__.startswith(_OF):  # one of the user's may be made of a tensor
            continue
        is_given = any(shape_of(value_of(it, frame)) is not None for it in call.args)
        is_told = re.search(rf"\b{kind.__name__}\b", said) is not None
        if not inspect.ismodule(owner) and (is_told or (is_given and _is_at(call, line))):
            yield call.func.attr, owner


def _is_at(node: ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _told(name: str, owner: Any) -> PlacedFix:
    """Where the text of its class keeps it; without such a line nothing is sure."""
    for kind in type(owner).__mro__:
        lines, first = lines_of(kind)
        definition = class_text(lines, first) if lines else None
        for node in ast.walk(definition) if definition else ():
            if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Call):
                continue
            if {f"self.{name}", name} & {ast.unparse(it) for it in node.targets}:
                file, written = inspect.getfile(kind), ast.unparse(node.value)
                made = f"{written}({_given(vars(owner).get(name, getattr(kind, name, None)))})"
                place = f"{shown_file(file)}:{node.lineno}"
                said = f"self.{name} ({place}) is the class itself"
                return PlacedFix(f"{file}:{node.lineno}", f"{said}: write {made} there")
    return PlacedFix()


def _given(kind: Any) -> str:
    """Points where it cannot be made of nothing."""
    try:
        taken = [*inspect.signature(kind).parameters.values()]
    except (TypeError, ValueError):
        return ""
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return "..." if any(it.default is it.empty and it.kind in plain for it in taken) else ""
