"""A method of a tensor that is asked of a tuple or a list of tensors, as of an LSTM's state.

torch.nn.LSTM gives `output, (h_n, c_n)`: neither its result nor its state is one tensor (torch's
manual, torch.nn.LSTM).
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import nodes_of, shown_file
from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of

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
    if node is None:
        return ""
    if batch := _taken_whole(node.value, frame, parts):
        return f"{ast.unparse(node.value)} is a list of {shapes[0]}: {batch}"
    return _to_write(node, nodes, name, parts, shapes)


def _taken_whole(held: ast.expr, frame: FrameType, parts: Any) -> str:
    """Of `x = batch`, where a data set of one tensor gives each batch as a list of one."""
    if type(parts) is not list or len(parts) != 1 or not isinstance(held, ast.Name):
        return ""
    for it in nodes_of(frame):
        if isinstance(it, ast.Assign) and isinstance(it.value, ast.Name):
            is_same = [ast.unparse(to) for to in it.targets] == [held.id]
            if is_same and value_of(it.value, frame) is parts:
                place = f"{shown_file(frame.f_code.co_filename)}:{it.lineno}"
                return f"write {held.id}, = {it.value.id} for {ast.unparse(it)} ({place})"
    return ""


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
