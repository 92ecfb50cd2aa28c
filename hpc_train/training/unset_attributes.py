"""An attribute that its object has not, though the text of its class sets it: where it does so."""

from __future__ import annotations

import ast
import inspect
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.training.private.versions import LIGHTNING_PACKAGES

_LIBRARIES = {"torch", "builtins", *(it.partition(".")[0] for it in LIGHTNING_PACKAGES)}
_BEFORE_STAGES = ("__init__", "prepare_data", "setup")


@dataclass(frozen=True)
class _Setter:
    method: ast.FunctionDef
    place: str


def where_set(error: AttributeError) -> str:
    """The method and the line that set it, and why not here as far as that is sure; or empty."""
    owner, name = error.obj, error.name
    if owner is None or not name or isinstance(owner, type):
        return ""
    found = [it for kind in type(owner).__mro__ for it in _setters(kind, name)]
    if len(found) != 1:
        return ""
    setter = found[0]
    said = f"{setter.place.partition(' ')[0]} sets self.{name} {setter.place.partition(' ')[2]}"
    stage = _stage_of(owner)
    is_asked_early = any(
        frame.f_code.co_name in _BEFORE_STAGES and frame.f_locals.get("self") is owner
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )
    if stage and not is_asked_early and _asks_for_stage(setter.method):
        return f"{said}, and not for stage {stage!r}: set it there for each stage that needs it"
    return f"{said}, and that line was not reached before"


def assigned_in(kind: type, name: str) -> str:
    """`FILE:LINE` where one method beside __init__ assigns it; empty where several do, or none."""
    found = [it for base in kind.__mro__ for it in _setters(base, name)]
    later = [it for it in found if it.method.name != "__init__"]
    return later[0].place.partition("(")[2].rstrip(")") if len(later) == 1 else ""


def _setters(kind: type, name: str) -> Iterator[_Setter]:
    """The methods of a class of the user's that assign it, once each; none where it is deleted."""
    if kind.__module__.partition(".")[0] in _LIBRARIES:
        return
    try:
        lines, first = inspect.getsourcelines(kind)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        file = Path(inspect.getfile(kind))
    except (OSError, TypeError, SyntaxError):  # made in a notebook or by a library
        return
    text = ast.unparse(tree)
    if "__getstate__" in text or "delattr(" in text or f"del self.{name}" in text:
        return
    file = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    named = f"{kind.__module__}.{kind.__qualname__}".removeprefix("__main__.")
    for method in tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []:
        if isinstance(method, ast.FunctionDef) and (line := _line_in(method, name)):
            yield _Setter(method, f"{named}.{method.name} ({file}:{first + line - 1})")


def _line_in(method: ast.FunctionDef, name: str) -> int:
    """Of the first assignment to it; 0 without one."""
    stored = [
        it.lineno
        for it in ast.walk(method)
        if isinstance(it, ast.Attribute)
        and it.attr == name
        and isinstance(it.ctx, ast.Store)
        and ast.unparse(it.value) == "self"
    ]
    return min(stored, default=0)


def _asks_for_stage(method: ast.FunctionDef) -> bool:
    tests = [it.test for it in ast.walk(method) if isinstance(it, ast.If | ast.IfExp)]
    return method.name == "setup" and any("stage" in ast.unparse(it) for it in tests)


def _stage_of(owner: Any) -> str:
    """What Lightning gave to `setup`; empty where its object is attached to no Trainer."""
    held = getattr(owner, "__dict__", {})
    trainer = held.get("trainer") or held.get("_trainer")
    of = getattr(getattr(trainer, "state", None), "fn", None)
    return str(getattr(of, "value", ""))
