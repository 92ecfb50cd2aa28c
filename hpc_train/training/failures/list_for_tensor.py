"""A list or a text in the place of a tensor, as of weight= of a loss: what makes one of it.

A function of torch's says `argument 'weight' must be Tensor, not list`, a class of torch.nn that it
cannot assign a list to its buffer (torch/csrc/utils/python_arg_parser.cpp, torch.nn.Module).
"""

from __future__ import annotations

import ast
import re
import traceback
from collections.abc import Mapping
from types import FrameType
from typing import Any

from hpc_train.config.specs import INIT_ARGS
from hpc_train.config.yaml_slips.tensor_texts import list_of_tensor
from hpc_train.training.failures.frame_text import is_users, nodes_at
from hpc_train.training.failures.frame_values import shape_of, value_of

_NO_TENSOR = re.compile(
    r"argument '(?P<name>\w+)' \(position \d+\) must be Tensor, not \w+$"
    r"|cannot assign '\w+' object to buffer '(?P<buffer>\w+)' \(torch Tensor or None required\)$"
)
_OF_CLASSES = ("weight", "pos_weight")  # of floats, also where whole numbers are written


def list_for_tensor(error: BaseException, texts: Mapping[str, str] | None = None) -> str:
    """What to write; empty where the error is of something else, or the text shows no one place.

    Args:
        texts: Among the arguments of the config's model and data, by key.
    """
    found = _NO_TENSOR.search(str(error)) if isinstance(error, TypeError) else None
    frames = [*traceback.walk_tb(error.__traceback__)] if found else []
    at = [index for index, it in enumerate(frames) if is_users(it[0].f_code.co_filename)]
    if found is None or not at or at[-1] + 1 >= len(frames):
        return ""
    (frame, line), inner = frames[at[-1]], frames[at[-1] + 1][0]
    name = found["name"] or found["buffer"]
    value = inner.f_locals.get(name)
    given = _given(frame, line, inner, name)
    if given is None:
        return ""
    call, node, is_named = given
    numbers = list_of_tensor(value) if isinstance(value, str) else value
    if not _is_of_numbers(numbers):
        return ""
    written = ast.unparse(node)
    how = ["dtype=torch.float32"] if name in _OF_CLASSES and not _has_floats(numbers) else []
    how += [] if found["buffer"] else _device_of(call, frame)
    of = written if not isinstance(numbers, int | float) else f"[{written}]"
    write = f"{f'{name}=' if is_named else ''}torch.tensor({', '.join([of, *how])})"
    if not isinstance(value, str):
        kind = type(value).__name__
        return f"{name} takes a tensor, and {written} is a {kind}: write {write}"
    keys = [it for it, text in (texts or {}).items() if text == value and INIT_ARGS in it]
    of_key = f", from {keys[0]}" if len(keys) == 1 else ""
    said = f"{name} takes a tensor, and {written} is the text {value!r}{of_key}"
    return f"{said}: write {numbers} there, and {write}"


def _given(
    frame: FrameType, line: int, inner: FrameType, name: str
) -> tuple[ast.Call, ast.expr, bool] | None:
    """The call of a line that gives the argument, what it gives, and whether by its name."""
    code = inner.f_code
    arguments = [it for it in code.co_varnames[: code.co_argcount] if it != "self"]
    found = list[tuple[ast.Call, ast.expr, bool]]()
    for call in (it for it in nodes_at(frame, line) if isinstance(it, ast.Call)):
        found += [(call, it.value, True) for it in call.keywords if it.arg == name]
        called = ast.unparse(call.func).rpartition(".")[2]
        if called != _called(inner) or name not in arguments:
            continue
        place = arguments.index(name)
        if place < len(call.args) and not any(isinstance(it, ast.Starred) for it in call.args):
            found.append((call, call.args[place], False))
    return found[0] if len(found) == 1 else None


def _called(inner: FrameType) -> str:
    """The name by which a line calls what runs in a frame: a function's, or a class's."""
    if inner.f_code.co_name != "__init__":
        return inner.f_code.co_name
    return type(inner.f_locals.get("self")).__name__


def _device_of(call: ast.Call, frame: FrameType) -> list[str]:
    """`device=logits.device`, by the first tensor that the call is given under a name."""
    is_tensor = (it for it in call.args if shape_of(value_of(it, frame)) is not None)
    first = next(is_tensor, None)
    return [f"device={ast.unparse(first)}.device"] if first is not None else []


def _is_of_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(map(_is_of_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_floats(value: Any) -> bool:
    """Whether torch makes a tensor of floats of it."""
    return any(map(_has_floats, value)) if isinstance(value, list | tuple) else type(value) is float
