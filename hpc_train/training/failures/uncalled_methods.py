"""A method that stands where what it returns is meant: `loss.item` for `loss.item()`."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

from hpc_train.training.failures.frame_values import failing_line, value_of

# The kinds of a method and a function, as messages of Python, torch and Lightning name them.
_METHOD = re.compile(r"builtin_function_or_method|(?:['`]|not |got )method\b|type method\b")
_FUNCTION = re.compile(r"(?:['`]|not |got )function\b|type function\b")
_WITH_ARGUMENTS = ("view", "reshape", "permute", "transpose", "to", "expand", "repeat", "gather")
_BY_PLACE = ("size", "stride", "get")
_LONG = 30


def uncalled_method(error: BaseException) -> str:
    """What to write; empty where the error is of something else, or several may be meant."""
    if not isinstance(error, TypeError | ValueError | AttributeError | RuntimeError):
        return ""
    said = str(error)
    is_method, is_function = _METHOD.search(said), _FUNCTION.search(said)
    found = failing_line(error) if is_method or is_function else None
    if found is None:
        return ""
    frame, nodes = found
    told = {*_of_names(nodes, frame, is_function=bool(is_function))}
    told |= {*_of_attributes(nodes, frame)} if is_method else set()
    return told.pop() if len(told) == 1 else ""


def _of_attributes(nodes: Sequence[ast.AST], frame: FrameType) -> Iterator[str]:
    called = {id(it.func) for it in nodes if isinstance(it, ast.Call)}
    indexed = {id(it.value): it for it in nodes if isinstance(it, ast.Subscript)}
    for node in nodes:
        if not isinstance(node, ast.Attribute) or id(node) in called:
            continue
        if not _is_method(node, frame):
            continue
        written = ast.unparse(node.value)
        written = f"{written if len(written) < _LONG else ''}.{node.attr}"
        index = indexed.get(id(node))
        if index is not None and node.attr in _BY_PLACE:
            yield f"{node.attr} is a method: write {written}({ast.unparse(index.slice)})"
        else:
            given = "..." if node.attr in _WITH_ARGUMENTS or _needs_more(node, frame) else ""
            yield f"{node.attr} is not called there: write {written}({given})"


def _is_method(node: ast.Attribute, frame: FrameType) -> bool:
    """Whether it surely is one; of what a call returns, whether a tensor has such a method."""
    owner = value_of(node.value, frame)
    if owner is not None:
        return inspect.isroutine(inspect.getattr_static(owner, node.attr, None))
    if isinstance(node.value, ast.Name | ast.Attribute):
        return False
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return inspect.isroutine(inspect.getattr_static(tensor, node.attr, None))


def _needs_more(node: ast.Attribute, frame: FrameType) -> bool:
    method = value_of(node, frame)
    if not inspect.isfunction(method):
        return False
    taken = list(inspect.signature(method).parameters.values())[1:]
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(it.default is it.empty and it.kind not in kinds for it in taken)


def _of_names(nodes: Sequence[ast.AST], frame: FrameType, *, is_function: bool) -> Iterator[str]:
    """Of a name that was given a method, and of a function."""
    called = {id(it.func) for it in nodes if isinstance(it, ast.Call)}
    for node in nodes:
        if not isinstance(node, ast.Name) or id(node) in called:
            continue
        value = frame.f_locals.get(node.id)
        of = getattr(value, "__self__", None) if inspect.isroutine(value) else None
        if of is not None and not inspect.ismodule(of):  # as math.sqrt
            name = getattr(value, "__name__", "")
            yield f"{node.id} is the method {name} itself: call it where it is made, .{name}()"
        elif is_function and inspect.isfunction(value_of(node, frame)):
            yield f"{node.id} is a function: write {node.id}(...)"
