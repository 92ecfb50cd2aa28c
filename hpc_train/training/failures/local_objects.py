"""A lambda or a function in a function that pickle refuses: where it is, what to write for it.

The error is raised as data workers are started, or a file is written, so that no frame names it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from hpc_train.training.failures.placed_fix import PlacedFix

# CPython's Lib/multiprocessing/reduction.py and Modules/_pickle.c; from 3.14 on by its repr.
_LOCAL = re.compile(r"local object (?:'|<function )(?P<name>[\w.<>]+?)(?:'| at 0x)")
_OF_MODULE = re.compile(r"attribute lookup (?P<name>[\w.<>]+) on (?P<module>[\w.]+) failed")
_LOCALS = ".<locals>."
_LAMBDA = "<lambda>"
_INSTALLED = ("site-packages", "dist-packages")


def local_object(error: BaseException) -> PlacedFix:
    """The lambda, function or class that an error of pickle's names.

    Returns:
        The place is that of its own line.
    """
    said = str(error)
    found = _LOCAL.search(said) or _OF_MODULE.search(said)
    if found is None:
        return PlacedFix()
    name, module = found["name"], found.groupdict().get("module") or ""
    codes = {(it.co_filename, it.co_firstlineno): it for it in _codes(name, module)}
    if len(codes) != 1:
        return PlacedFix()
    ((file, line),) = codes
    return PlacedFix(f"{file}:{line}", _to_write(name.rpartition(".")[2], codes[file, line]))


def _to_write(name: str, code: CodeType) -> str:
    own = "function" if name == _LAMBDA else name
    taken = ", ".join(code.co_varnames[: code.co_argcount])
    is_class = "__module__" in code.co_names and "__qualname__" in code.co_names
    fix = f"move it to the top of the module: {'class' if is_class else 'def'} {own}"
    fix += ": ..." if is_class else f"({taken}): ..."
    around = [it for it in code.co_freevars if it != "__class__"]
    if around and not is_class:
        fix += f", and give it {', '.join(around)} as arguments by functools.partial"
    return fix


def _codes(name: str, module: str) -> Iterator[CodeType]:
    """The code of all that a qualified name may mean, in what is no installed package."""
    outer, *inner = name.split(_LOCALS)
    for at in [sys.modules.get(module)] if module else [*sys.modules.values()]:
        file = getattr(at, "__file__", None) or ""
        if at is None or any(part in file for part in _INSTALLED) or _is_of_python(at):
            continue
        for code in _named(vars(at), outer):
            yield from _below(code, [it.rpartition(".")[2] for it in inner])


def _is_of_python(module: Any) -> bool:
    return getattr(module, "__name__", "").partition(".")[0] in sys.stdlib_module_names - {
        "__main__"
    }


def _named(names: Any, dotted: str) -> Iterator[CodeType]:
    if dotted == _LAMBDA:
        values = [it for it in names.values() if getattr(it, "__name__", "") == _LAMBDA]
    else:
        first, *rest = dotted.split(".")
        value = names.get(first)
        for part in rest:
            value = getattr(value, "__dict__", {}).get(part)
        values = [value]
    for value in values:
        function = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        if isinstance(code := getattr(function, "__code__", None), CodeType):
            yield code


def _below(code: CodeType, names: list[str]) -> Iterator[CodeType]:
    if not names:
        yield code
        return
    for part in code.co_consts:
        if isinstance(part, CodeType) and part.co_name == names[0]:
            yield from _below(part, names[1:])
