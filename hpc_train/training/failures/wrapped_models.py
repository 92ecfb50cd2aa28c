"""An attribute of a model that is asked of what wraps it, or of a model that nothing wraps.

torch's DistributedDataParallel and DataParallel hold the model in `.module` and hand no name on
(torch/nn/parallel/distributed.py); FullyShardedDataParallel, a compiled model and Fabric's do.
"""

from __future__ import annotations

import ast
import inspect
from types import FrameType
from typing import Any

from hpc_train.config.words import did_you_mean
from hpc_train.training.failures.frame_values import attribute_of, failing_line, value_of

_WRAPPERS = ("DistributedDataParallel", "DataParallel")
_HOME = "torch.nn.parallel."
_INSIDE = "module"
_COMPILED = "_orig_mod"


def wrapped_attribute(error: BaseException) -> str:
    """What to write; empty where the error is of something else."""
    if not isinstance(error, AttributeError) or not error.name:
        return ""
    owner, name = error.obj, error.name
    frame, nodes = failing_line(error) or (None, [])
    if frame is None or not hasattr(type(owner), "named_modules"):
        return ""
    asked = next((it for it in nodes if _is_asked(it, owner, name, frame)), None)
    if name == _INSIDE:
        return _of_bare(asked, nodes)
    kind = next((it.__name__ for it in type(owner).__mro__ if _wraps(it)), "")
    inner = attribute_of(owner, _INSIDE) if kind else None
    if inner is None:
        return ""
    inner = attribute_of(inner, _COMPILED) or inner
    holder = ast.unparse(asked.value) if isinstance(asked, ast.Attribute) else "model"
    held = f"{kind} holds the {type(inner).__name__} in .{_INSIDE}"
    if not _has(inner, name):
        near = did_you_mean(name, [it for it in dir(inner) if not it.startswith("_")])
        return f"{held}, which has no {name} either{f': {near}' if near else ''}"
    called = any(isinstance(it, ast.Call) and it.func is asked for it in nodes)
    by_forward = f"; in a training step call it in forward(), and write {holder}(...)"
    why = f"{by_forward}, as that alone averages the gradients" if called else ""
    return f"write {holder}.{_INSIDE}.{name}, as {held}{why}"


def _of_bare(asked: ast.AST | None, nodes: list[ast.AST]) -> str:
    """Of `model.module` where nothing wraps the model, as in a run of one rank."""
    holder = ast.unparse(asked.value) if isinstance(asked, ast.Attribute) else "self"
    if holder == "self":  # its own class is to set it
        return ""
    behind = next((it for it in nodes if isinstance(it, ast.Attribute) and it.value is asked), None)
    more = f".{behind.attr}" if behind else ""
    same = f'getattr({holder}, "{_INSIDE}", {holder}){more}'
    return f"nothing wraps {holder} here: write {same}, which is right in both cases"


def _is_asked(node: ast.AST, owner: object, name: str, frame: FrameType) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != name:
        return False
    value = value_of(node.value, frame)
    return value is owner or attribute_of(value, _COMPILED) is owner


def _wraps(kind: type) -> bool:
    return kind.__name__ in _WRAPPERS and kind.__module__.startswith(_HOME)


def _has(module: Any, name: str) -> bool:
    missing = object()
    is_static = inspect.getattr_static(module, name, missing) is not missing
    return is_static or attribute_of(module, name) is not None
