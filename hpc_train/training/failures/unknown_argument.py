"""An argument by a name that a call does not take: the name that was meant, of those it takes."""

from __future__ import annotations

import ast
import inspect
import re
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.config.scripts.script_trainers import old_argument
from hpc_train.config.words import did_you_mean
from hpc_train.training.failures.frame_text import nodes_at
from hpc_train.training.failures.frame_values import value_of

_UNKNOWN = re.compile(r"(?P<call>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_MOST_SHOWN = 12  # an Adam of torch's takes 11


def meant_argument(error: BaseException) -> str:
    """`did you mean 'prog_bar'?`, or what the call takes; empty where that is not sure."""
    found = _UNKNOWN.search(str(error)) if isinstance(error, TypeError) else None
    frames = [*traceback.walk_tb(error.__traceback__)]
    if found is None or not frames:
        return ""
    if old := _of_trainer(error, found["name"]):
        return old
    every = (
        it
        for frame, line in reversed(frames)
        for it in _called(frame, line, found["call"], found["name"])
    )
    function = next(every, None)
    taken = _taken(function)
    if not taken or found["name"] in taken:
        return ""
    if near := did_you_mean(found["name"], taken, cutoff=0.7):
        return near
    return f"it takes {', '.join(taken)}" if len(taken) <= _MOST_SHOWN else ""


def _of_trainer(error: BaseException, name: str) -> str:
    """All that a script gives Lightning's Trainer by the names of Lightning 1, by `**` as well."""
    if not str(error).startswith("Trainer.__init__()"):
        return ""
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        given = frame.f_locals.get("kwargs")
        if not is_lightnings(str(frame.f_globals.get("__name__", ""))):
            return ""
        if isinstance(given, dict) and name in given:
            told = {it: old_argument(it, value) for it, value in given.items()}
            return "; ".join(f"{it}: {write}" for it, write in told.items() if write)
    return ""


def _called(frame: FrameType, line: int, call: str, name: str) -> Iterator[Any]:
    """What of that name the line calls with such an argument, or with what it was handed."""
    for node in nodes_at(frame, line):
        if isinstance(node, ast.Call) and any(it.arg in (name, None) for it in node.keywords):
            value = value_of(node.func, frame)
            made = "__init__" if isinstance(value, type) else getattr(value, "__name__", "")
            if value is not None and made == call:
                yield value


def _taken(function: Any) -> list[str]:
    """The arguments that can be given by name; none where it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(it.kind is it.VAR_KEYWORD for it in parameters):
        return []
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [it.name for it in parameters if it.kind in by_name and it.name not in ("self", "cls")]
