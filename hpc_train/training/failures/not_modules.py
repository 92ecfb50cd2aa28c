"""What stands in a layer's place, or a layer in a tensor's: lists, functions, classes, layers."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.config.fit.sure_losses import uncalled_loss
from hpc_train.training.failures.frame_values import failing_line, value_of

_NO_MODULE = re.compile(r"(?P<what>\S+) is not a Module subclass")
_NO_TENSOR = re.compile(r"must be (?:a )?Tensors?, not (?P<kind>\w+)")
_AMBIGUOUS = "Boolean value of Tensor with more than one value is ambiguous"
_HOLDERS = ("Sequential", "ModuleList")


def not_module(error: BaseException) -> str:
    """What to write; empty where the error is of something else, or it is not sure."""
    if isinstance(error, RuntimeError) and _AMBIGUOUS in str(error):
        return _of_loss(error)
    if not isinstance(error, TypeError):
        return ""
    found = _NO_TENSOR.search(str(error))
    is_part = _NO_MODULE.match(str(error))
    line = failing_line(error) if found or is_part else None
    if line is None:
        return ""
    frame, nodes = line
    calls = [it for it in nodes if isinstance(it, ast.Call)]
    told = {*(_of_layers(calls, frame, found["kind"]) if found else _of_parts(calls, frame))}
    return told.pop() if len(told) == 1 else ""


def _of_loss(error: BaseException) -> str:
    """Of `nn.CrossEntropyLoss(out, y)`, which makes the loss, and takes y for a truth."""
    last = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
    if last.f_globals.get("__name__") != "torch.nn._reduction":
        return ""
    frame, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and len(it.args) == 2]
    made = [it for it in calls if frame and _is_loss(value_of(it.func, frame))]
    return uncalled_loss(made[0]) if len(made) == 1 else ""


def _is_loss(value: Any) -> bool:
    return _is_layer(value) and value.__module__.startswith("torch.nn.")


def _of_layers(calls: Sequence[ast.Call], frame: FrameType, kind: str) -> Iterator[str]:
    """Of `nn.ReLU(x)`, which makes a layer, and takes `x` for its first argument."""
    for call in calls:
        made = value_of(call.func, frame)
        if _is_layer(made) and made.__name__ == kind and len(call.args) == 1:
            written, given = ast.unparse(call.func), ast.unparse(call.args[0])
            said = f"{written}({given}) makes a layer and does not call it"
            yield f"{said}: write {written}()({given})"


def _of_parts(calls: Sequence[ast.Call], frame: FrameType) -> Iterator[str]:
    """Of what stands in nn.Sequential(...) between the layers."""
    for call in calls:
        holder = ast.unparse(call.func)
        if holder.rpartition(".")[2] not in _HOLDERS:
            continue
        parts = call.args
        if holder.endswith("Sequential") and len(parts) == 1 and _is_list(parts[0], frame):
            write = f"{holder}(*{_shown(parts[0])})"
            yield f"{holder} takes the layers one by one: write {write}"
            continue
        if len(parts) == 1 and isinstance(parts[0], ast.List):
            parts = parts[0].elts
        for part in parts:
            value, written = value_of(part, frame), ast.unparse(part)
            if _is_layer(value):
                yield f"{written} is a class: write {written}() for it"
            elif inspect.isroutine(value) and (layer := _layer_of(value)):
                yield f"{written} is a function: write nn.{layer}() for it"


def _is_list(node: ast.expr, frame: FrameType) -> bool:
    return isinstance(node, ast.List) or type(value_of(node, frame)) in (list, tuple)


def _shown(node: ast.expr) -> str:
    return "[...]" if isinstance(node, ast.List) else ast.unparse(node)


def _is_layer(value: Any) -> bool:
    return isinstance(value, type) and hasattr(value, "named_modules")


def _layer_of(function: Any) -> str:
    """The one class of torch.nn that a function is called like, as ReLU is like relu."""
    name = getattr(function, "__name__", "").replace("_", "")
    names = dir(sys.modules.get("torch.nn"))
    found = [it for it in names if it.lower() == name and it != name]
    return found[0] if len(found) == 1 else ""
