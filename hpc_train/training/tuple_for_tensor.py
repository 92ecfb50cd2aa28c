"""A method of a tensor that is asked of a tuple or a list of tensors, as of an LSTM's state.

torch.nn.LSTM gives `output, (h_n, c_n)`: neither its result nor its state is one tensor (torch's
manual, torch.nn.LSTM).
"""

from __future__ import annotations

import ast
from typing import Any

from hpc_train.training.frame_values import failing_line, shape_of, value_of

# What a person means of each of them; of the others one of them is meant.
_OF_EACH = ("detach", "detach_", "to", "cuda", "cpu", "float", "double", "half", "clone", "zero_")
_MOST = 4  # parts that are told one by one
_ORDER = ("first", "second", "third")


def tuple_for_tensor(error: BaseException) -> str:
    """What the value is and what to write; empty where the error is of something else."""
    if not isinstance(error, AttributeError) or not isinstance(error.obj, tuple | list):
        return ""
    parts, name = error.obj, error.name or ""
    shapes = [_told(it) for it in parts]
    frame, nodes = failing_line(error) or (None, [])
    if frame is None or not any(shape_of(it) is not None for it in parts):
        return ""
    asked = [it for it in nodes if isinstance(it, ast.Attribute) and it.attr == name]
    held = [it for it in asked if value_of(it.value, frame) is parts]
    made = [it for it in asked if isinstance(it.value, ast.Call)]
    node = held[0] if held else made[0] if len(made) == 1 else None
    return _to_write(node, nodes, name, parts, shapes) if node is not None else ""


def _to_write(
    node: ast.Attribute, nodes: list[ast.AST], name: str, parts: Any, shapes: list[str]
) -> str:
    written, kind = ast.unparse(node.value), "tuple" if isinstance(parts, tuple) else "list"
    many = f"{', '.join(shapes[:_MOST])}{', ...' if len(shapes) > _MOST else ''}"
    call = next((it for it in nodes if isinstance(it, ast.Call) and it.func is node), None)
    given = ", ".join(map(ast.unparse, (*call.args, *call.keywords))) if call else ""
    brackets = f"({given})" if call else ""
    is_tensors = all(shape_of(it) is not None for it in parts)
    said = f"{written} is a {kind} of {many}"
    if name in _OF_EACH and is_tensors and call is not None:
        each = f"it.{name}{brackets} for it in {written}"
        return f"{said}: write {f'tuple({each})' if kind == 'tuple' else f'[{each}]'}"
    first = next(index for index, it in enumerate(parts) if shape_of(it) is not None)
    which = f" for the {_ORDER[first]} of them" if first < len(_ORDER) else ""
    return f"{said}: write {written}[{first}].{name}{brackets}{which}"


def _told(part: Any) -> str:
    """A part by its kind and shape."""
    shape = shape_of(part)
    if shape is not None:
        return f"a tensor {list(shape)}"
    kind = type(part).__name__
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
