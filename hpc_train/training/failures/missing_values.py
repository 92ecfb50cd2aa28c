"""A call with too few values, or too many: what the function takes, of the user's own its def."""

from __future__ import annotations

import ast
import inspect
import re
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_at, shown_file
from hpc_train.training.failures.frame_values import value_of

_REFUSED = re.compile(
    r"(?P<call>[\w.<>]+)\(\) (?:missing (?P<few>\d+) required|takes [\w ]+ arguments? but)"
)
_MOST = 10  # parameters that are told one by one
_LONG = 60  # of a call that is told as it is written


def missing_values(error: BaseException) -> str:
    """What the function needs and the call gives; empty where the line does not tell."""
    found = _REFUSED.match(str(error)) if isinstance(error, TypeError) else None
    if found is None:
        return ""
    told = {*filter(None, _told(error, found["call"], is_few=bool(found["few"])))}
    return told.pop() if len(told) == 1 else ""


def _told(error: BaseException, called: str, *, is_few: bool) -> Iterator[str]:
    frames = [*traceback.walk_tb(error.__traceback__)]
    users = [it for it in frames if is_users(it[0].f_code.co_filename)]
    if not users or not _is_called_there(users[-1][0], frames[-1][0]):
        return
    frame, line = users[-1]
    for node in nodes_at(frame, line):
        if not isinstance(node, ast.Call) or any(isinstance(it, ast.Starred) for it in node.args):
            continue
        function = _function(node.func, frame)
        if function is None or called not in (function.__qualname__, function.__name__):
            continue
        if all(it.arg for it in node.keywords):
            yield _few(node, function, frame) if is_few else _many(node, function)


def _is_called_there(users: FrameType, last: FrameType) -> bool:
    """Whether the user's own line made the call, itself or by `self(x)` of a module of torch's."""
    return last is users or last.f_globals.get("__name__") == "torch.nn.modules.module"


def _function(node: ast.expr, frame: FrameType) -> Any:
    """The function that a call ends in: of a module its forward, of a class its __init__."""
    value = value_of(node, frame)
    if isinstance(node, ast.Call | ast.Subscript) or value is None:
        return None
    if isinstance(value, type):
        value = inspect.getattr_static(value, "__init__", None)
    elif hasattr(type(value), "named_modules"):
        value = inspect.getattr_static(type(value), "forward", None)
    value = inspect.unwrap(value) if inspect.isroutine(value) else value
    return value if inspect.isfunction(value) else None


def _few(call: ast.Call, function: Any, frame: FrameType) -> str:
    lacking = _lacking(call, function)
    if not lacking:
        return ""
    many = ", ".join(lacking)
    written = ast.unparse(call)
    needs = f"{_named(call, function)} needs {many}, and {_short(written)} does not give"
    needs += " it" if len(lacking) == 1 else " them"
    first = _of_torch(lacking[0], function, frame) if not call.args else ""
    others = lacking[1:] if first else lacking
    given = [first] if first else [*map(ast.unparse, call.args)]
    with_them = [*given, *_by_name(call), *_as_given(others, call, function)]
    write = f"{ast.unparse(call.func)}({', '.join(with_them)})"
    if not is_users(function.__code__.co_filename):
        return f"{needs}: write {_short(write)}"
    default = ", ".join(f"{it}=None" for it in lacking)
    return f"{needs}: write {_short(write)}, or {default} in the def where it may be left out"


def _many(call: ast.Call, function: Any) -> str:
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [it.name for it in _parameters(function) if it.kind in by_place]
    if len(taken) > _MOST or len(call.args) <= len(taken):
        return ""
    takes = ", ".join(taken) if taken else "nothing"
    gives = f"{len(call.args)} value{'' if len(call.args) == 1 else 's'}"
    written = _short(ast.unparse(call))
    return f"{_named(call, function)} takes {takes} by place, and {written} gives {gives}"


def _lacking(call: ast.Call, function: Any) -> list[str]:
    """Parameters without a default that the call gives no value."""
    by_name = {it.arg for it in call.keywords}
    left: list[inspect.Parameter] = []
    places = len(call.args)
    for it in _parameters(function):
        if it.kind in (it.VAR_POSITIONAL, it.VAR_KEYWORD):
            continue
        if it.kind is not it.KEYWORD_ONLY and places:
            places -= 1
        elif it.default is it.empty and it.name not in by_name:
            left.append(it)
    return [it.name for it in left]


def _parameters(function: Any) -> list[inspect.Parameter]:
    """Without `self`."""
    taken = list(inspect.signature(function).parameters.values())
    return taken[1:] if taken and taken[0].name in ("self", "cls") else taken


def _by_name(call: ast.Call) -> Iterator[str]:
    return (f"{it.arg}={ast.unparse(it.value)}" for it in call.keywords)


def _as_given(lacking: Sequence[str], call: ast.Call, function: Any) -> Iterator[str]:
    """The lacking ones as the call has to name them."""
    only = {it.name for it in _parameters(function) if it.kind is it.KEYWORD_ONLY}
    for name in lacking:
        yield f"{name}={name}" if name in only or call.keywords else name


def _of_torch(name: str, function: Any, frame: FrameType) -> str:
    """What an optimizer of torch's, or a scheduler, takes first, where one thing there is it."""
    if not function.__module__.startswith("torch.optim"):
        return ""
    attribute = {"params": "named_parameters", "optimizer": "param_groups"}.get(name, "")
    there = [it for it, value in frame.f_locals.items() if attribute and hasattr(value, attribute)]
    found = "self" if "self" in there else there[0] if len(there) == 1 else ""
    return f"{found}.parameters()" if found and name == "params" else found


def _named(call: ast.Call, function: Any) -> str:
    """Its def, of the user's own; else what is called."""
    is_own = is_users(function.__code__.co_filename)
    return _def(function) if is_own else _short(ast.unparse(call.func))


def _def(function: Any) -> str:
    """`def forward(self, x, mask=...) (nets.py:15)`."""
    code = function.__code__
    every = list(inspect.signature(function).parameters.values())
    shown = [*map(_shown, every)]
    only = [number for number, it in enumerate(every) if it.kind is it.KEYWORD_ONLY]
    if only and not any(it.kind is it.VAR_POSITIONAL for it in every):
        shown.insert(only[0], "*")
    place = f"{shown_file(code.co_filename)}:{code.co_firstlineno}"
    return f"def {function.__name__}({', '.join(shown)}) ({place})"


def _shown(parameter: inspect.Parameter) -> str:
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else stars
    default = "" if parameter.default is parameter.empty else "=..."
    return f"{stars}{parameter.name}{default}"


def _short(written: str) -> str:
    return written if len(written) <= _LONG else f"{written[:_LONG].rstrip()}..."
