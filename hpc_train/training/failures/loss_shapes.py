"""Shapes of logits and labels, and of the tensors of a data set, that do not fit each other."""

from __future__ import annotations

import ast
import math
import re
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.frame_values import failing_line, shape_of
from hpc_train.training.failures.layers import frames_of, owners
from hpc_train.training.failures.squeezed_loss import Given, squeeze
from hpc_train.training.failures.time_first_layers import time_first
from hpc_train.training.failures.users_method import lines_of, own_method, parsed

_ROWS = re.compile(r"Expected input batch_size \(\d+\) to match target batch_size \(\d+\)")
_UNFIT = re.compile(r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)")
_OF_SET = "Size mismatch between tensors"
_RESHAPES = ("view", "reshape")


def unfit_rows(error: BaseException) -> str:
    """The shapes, and what to write; empty where the error is of something else."""
    frames = frames_of(error)
    if not frames:
        return ""
    held = frames[-1].f_locals
    if isinstance(error, ValueError) and _ROWS.search(str(error)):
        has, wants = (shape_of(held.get(name)) for name in ("input", "target"))
        if has and wants:
            return _of_labels(error, has, wants)
    squeezed, _ = _of_loss(error)
    if squeezed:
        return squeezed
    if isinstance(error, AssertionError) and str(error) == _OF_SET:
        tensors = held.get("tensors")
        shapes = [*map(shape_of, tensors)] if isinstance(tensors, tuple) else []
        if shapes and all(shapes):
            rows = " and ".join(str(it[0]) for it in shapes if it)
            return f"the tensors have {rows} rows: give the same samples of each"
    return ""


def unfit_loss(error: BaseException) -> str:
    """Both shapes, where nothing tells more of what the line has."""
    return _of_loss(error)[1]


def _of_loss(error: BaseException) -> tuple[str, str]:
    """Of torch's mse_loss and the like, which broadcast an input and a target by themselves.

    Returns:
        What to write where a dimension of 1 is too many, else empty; and the shapes alone.
    """
    users, shapes = failing_line(error), shapes_of_loss(error)
    if not users or not shapes:
        return "", ""
    (has, wants), function = shapes, _losses(error)[-1].f_code.co_name
    said = f"the input has the shape {list(has)} and the target {list(wants)}"
    fix = squeeze(Given(function, has, wants), *users)
    return f"{said}: {fix}" if fix else "", said


def shapes_of_loss(error: BaseException) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Of the input and of the target that a loss of torch's could not broadcast."""
    is_unfit = isinstance(error, RuntimeError) and _UNFIT.match(str(error))
    for frame in _losses(error) if is_unfit else ():
        has, wants = (shape_of(frame.f_locals.get(name)) for name in ("input", "target"))
        return None if has is None or wants is None else (has, wants)
    return None


def _losses(error: BaseException) -> list[FrameType]:
    """The frame of torch's function that was called last, where that is a loss."""
    of_torch = [
        it for it in frames_of(error) if it.f_globals.get("__name__") == "torch.nn.functional"
    ]
    return [it for it in of_torch[-1:] if it.f_code.co_name.endswith("_loss")]


def _of_labels(error: BaseException, has: tuple[int, ...], wants: tuple[int, ...]) -> str:
    said = f"the logits have the shape {list(has)} and the labels {list(wants)}"
    if len(has) == 2 and len(wants) > 1 and has[0] == math.prod(wants):
        return f"{said}: give the labels as y.view(-1)"
    for owner in owners(frames_of(error)):
        if fix := time_first(owner, has[0], wants[0], _shapes_of_batch(error)):
            return f"{said}: {fix}"
    if len(wants) != 1 or has[0] <= wants[0] or has[0] % wants[0]:
        return said
    for owner in owners(frames_of(error)):
        if found := _reshape(owner):
            place, of, written, rest = found
            mixes = f"{written} ({place}) makes {has[0] // wants[0]} rows of each sample"
            return f"{said}: {mixes}: write {of}.{rest}({of}.size(0), -1)"
    return said


def _shapes_of_batch(error: BaseException) -> list[tuple[int, ...]]:
    """Of what the failing function of the user's has under names of its own."""
    line = failing_line(error)
    shapes = [shape_of(it) for it in line[0].f_locals.values()] if line else []
    return [it for it in shapes if it and len(it) > 1]


def _reshape(owner: Any) -> tuple[str, str, str, str] | None:
    """The one `x.view(-1, 8)` of the model's forward."""
    forward = own_method(owner, "forward")
    lines, first = lines_of(forward)
    tree = parsed(lines)
    found = []
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        rows = ast.unparse(node.args[0]) if node.args else ""
        if node.func.attr in _RESHAPES and rows == "-1" and len(node.args) == 2:
            of = ast.unparse(node.func.value)
            place = f"{shown_file(forward.__code__.co_filename)}:{first + node.lineno - 1}"
            found.append((place, of, ast.unparse(node), node.func.attr))
    return found[0] if len(found) == 1 and found[0][1].isidentifier() else None
