"""What a name stands for in a frame, without running any code of the user's."""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_at

_HELD = ("_modules", "_parameters", "_buffers")  # of a torch.nn.Module


def failing_line(error: BaseException) -> tuple[FrameType, list[ast.AST]] | None:
    """The innermost frame of the user's, and what its line does; None where none is."""
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        if is_users(frame.f_code.co_filename):
            return frame, list(nodes_at(frame, line))
    return None


def value_of(node: ast.expr, frame: FrameType) -> Any:
    """Of `x` or `self.net.x`; None of another expression, of a property and of what is not set."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if not isinstance(node, ast.Attribute):
        return None
    owner = value_of(node.value, frame)
    return None if owner is None else attribute_of(owner, node.attr)


def shape_of(value: Any) -> tuple[int, ...] | None:
    """Of a tensor or an array; None of another value. It waits for no device."""
    if type(value).__name__ not in ("Tensor", "Parameter", "ndarray"):
        return None
    return tuple(value.shape)


def attribute_of(owner: Any, name: str) -> Any:
    """Of an object, also a part of a module; None of a property and of what is not set."""
    found = inspect.getattr_static(owner, name, None)
    found = getattr(found, "__func__", found)  # of a class's and a static method
    if found is None:
        held = getattr(owner, "__dict__", {})
        return next((it for it in _held(held, name) if it is not None), None)
    is_computed = hasattr(type(found), "__get__") and not inspect.isroutine(found)
    return None if is_computed and name not in getattr(owner, "__dict__", {}) else found


def _held(held: dict[str, Any], name: str) -> Iterator[Any]:
    yield from ((held.get(it) or {}).get(name) for it in _HELD)
