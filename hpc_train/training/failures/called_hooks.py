"""A hook of Lightning's that cannot take what Lightning calls it with: where it is, what it gets.

Python raises such a TypeError in the caller, so that no frame of the user's own names the method.
"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpc_train.training.private.versions import LIGHTNING_PACKAGES

# CPython's Python/ceval.c: too_many_positional, missing_arguments, and of unknown keywords.
_REFUSED = re.compile(
    r"(?P<of>[A-Za-z_][\w.]*)\.(?P<name>\w+)\(\) (?:missing \d+ required"
    r"|takes [\w ]+ arguments? but|got an unexpected keyword argument|got multiple values for)"
)
_EMPTY = inspect.Parameter.empty
_WRAPS = "lightning_utilities"  # of `@rank_zero_only`
_STEPS = ("training_step", "validation_step", "test_step", "predict_step")
_PACKAGES = tuple(name.partition(".")[0] for name in LIGHTNING_PACKAGES)


@dataclass(frozen=True)
class CalledHook:
    """A method of the user's; both are empty where the error is of something else.

    Attributes:
        where: `file:line` of its def.
        passed: What Lightning calls it with, in words.
    """

    where: str = ""
    passed: str = ""


def called_hook(error: BaseException) -> CalledHook:
    """The method that refused what Lightning gave it."""
    found = _REFUSED.match(str(error)) if isinstance(error, TypeError) else None
    if found is None or found["name"] == "__init__" or not _was_called_by_lightning(error):
        return CalledHook()
    methods = {id(code): (kind, code) for kind, code in _methods(found["of"], found["name"])}
    if len(methods) != 1:
        return CalledHook()
    ((kind, code),) = methods.values()
    where = f"{code.co_filename}:{code.co_firstlineno}"
    if optional := _optional(kind, found["name"], str(error)):
        return CalledHook(where, optional)
    given = _given(kind, found["name"])
    return CalledHook(where, f"Lightning calls it with {given}" if given else "")


def _was_called_by_lightning(error: BaseException) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = frames[-1].f_globals.get("__name__", "") if frames else ""
    return module.partition(".")[0] in (*_PACKAGES, _WRAPS)


def _methods(of: str, name: str) -> Iterator[tuple[type, Any]]:
    """Classes of that qualified name outside of Lightning with such a method, and its code."""
    for module in [*sys.modules.values()]:
        if getattr(module, "__name__", "").partition(".")[0] in _PACKAGES:
            continue
        kind: Any = module
        for part in of.split("."):
            kind = getattr(kind, "__dict__", {}).get(part)
        method = kind.__dict__.get(name) if isinstance(kind, type) else None
        function = getattr(method, "__func__", method)
        code = getattr(inspect.unwrap(function) if function else None, "__code__", None)
        if isinstance(kind, type) and code is not None:
            yield kind, code


def _optional(kind: type, name: str, said: str) -> str:
    """What to write for a parameter that Lightning's own hook has with a default, and gives seldom.

    As `dataloader_idx=0`, which it leaves out where there is one loader.
    """
    missing = re.findall(r"'(\w+)'", said.partition(" missing ")[2])
    for base in kind.__mro__ if missing else ():
        method = base.__dict__.get(name)
        if base.__module__.partition(".")[0] not in _PACKAGES or not callable(method):
            continue
        taken = inspect.signature(method).parameters
        known = [taken[it] for it in missing if it in taken and taken[it].default is not _EMPTY]
        if len(known) == len(missing):
            write = ", ".join(f"{it.name}={it.default!r}" for it in known)
            return f"write {write} in its def, as Lightning's own has it: it is not always given"
        return ""
    return ""


def _given(kind: type, name: str) -> str:
    """What Lightning's own class says that such a method takes."""
    if name in _STEPS:
        return "batch, batch_idx"
    for base in kind.__mro__:
        method = base.__dict__.get(name)
        if base.__module__.partition(".")[0] not in _PACKAGES or not callable(method):
            continue
        _, *taken = inspect.signature(method).parameters.values()
        if any(it.kind in (it.VAR_POSITIONAL, it.VAR_KEYWORD) for it in taken):
            return ""
        return ", ".join(it.name for it in taken) or "nothing"
    return ""
