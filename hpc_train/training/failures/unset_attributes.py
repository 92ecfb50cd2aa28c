"""An attribute that its object has not, though the text of its class sets it: where it does so."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.config.fit.near_hooks import HOOKED, is_spoken_of, meant_hook
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.training.failures.frame_text import shown_class
from hpc_train.training.private.versions import LIGHTNING_PACKAGES

_LIBRARIES = {"torch", "builtins", *(it.partition(".")[0] for it in LIGHTNING_PACKAGES)}
_LIGHTNINGS = tuple(it.partition(".")[0] for it in LIGHTNING_PACKAGES)
_BEFORE_STAGES = ("__init__", "prepare_data", "setup")
_EMPTY = ("[]", "{}", "()", "list()", "dict()", "None")


@dataclass(frozen=True)
class _Setter:
    method: ast.FunctionDef
    place: str


def where_set(error: AttributeError) -> str:
    """The method and the line that set it, and why not here as far as that is sure; or empty.

    Of what no method sets, the line that makes a local of that name, or __init__ that takes one.
    """
    owner, name = error.obj, error.name
    if owner is None or not name or isinstance(owner, type):
        return ""
    found = [it for kind in type(owner).__mro__ for it in _setters(kind, name)]
    if not found:
        return _kept_local(owner, name)
    if len(found) != 1:
        return ""
    setter = found[0]
    said = f"{setter.place.partition(' ')[0]} sets self.{name} {setter.place.partition(' ')[2]}"
    if meant := _hook_of(owner, setter.method.name):
        return f"{said}, and nothing calls {setter.method.name}: rename it to {meant}"
    stage = _stage_of(owner)
    is_asked_early = any(
        frame.f_code.co_name in _BEFORE_STAGES and frame.f_locals.get("self") is owner
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )
    if stage and not is_asked_early and _asks_for_stage(setter.method):
        return f"{said}, and not for stage {stage!r}: set it there for each stage that needs it"
    return f"{said}, and that line was not reached before"


def _hook_of(owner: object, name: str) -> str:
    """Lightning's hook that a method is meant as, where nothing in the project calls it."""
    kinds = [it.__name__ for it in type(owner).__mro__ if it.__module__.startswith(_LIGHTNINGS)]
    kind = next((it for it in kinds if it in HOOKED), "")
    meant = meant_hook(name, kind, sys.path) if kind else ""
    if not meant or is_spoken_of(name, str(Path.cwd())):
        return ""
    return meant


def assigned_in(kind: type, name: str) -> str:
    """`FILE:LINE` where one method beside __init__ assigns it; empty where several do, or none."""
    found = [it for base in kind.__mro__ for it in _setters(base, name)]
    later = [it for it in found if it.method.name != "__init__"]
    return later[0].place.partition("(")[2].rstrip(")") if len(later) == 1 else ""


def set_in(kind: type, name: str) -> str:
    """`FILE:LINE` of the one method that assigns it; empty where several do, or none."""
    found = [it for base in kind.__mro__ for it in _setters(base, name)]
    return found[0].place.partition("(")[2].rstrip(")") if len(found) == 1 else ""


def _kept_local(owner: object, name: str) -> str:
    """What to write where a method has a local of that name, which ends with the method."""
    methods = [it for kind in type(owner).__mro__ for it in _methods(kind, name)]
    if kept := next(filter(None, (_kept_as(it.method, name) for it in methods)), ""):
        return f"did you mean {kept!r}?"
    made = [(it, line) for it in methods if (line := _local_in(it.method, name))]
    if made:
        it, line = made[0]
        return f"{it.at(line)} makes {name} without self: write self.{name} = ... there"
    taken = [it for it in methods if it.method.name == "__init__" and name in _arguments(it.method)]
    if taken and not name.startswith("_"):
        it = taken[0]
        return f"{it.at(it.method.lineno)} takes {name}: write self.{name} = {name} there"
    return ""


def _kept_as(method: ast.FunctionDef, name: str) -> str:
    """`learning_rate` of `self.learning_rate = lr`; empty without such a line."""
    for it in ast.walk(method):
        if isinstance(it, ast.Assign) and ast.unparse(it.value) == name:
            target = it.targets[0]
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                return target.attr
    return ""


def _local_in(method: ast.FunctionDef, name: str) -> int:
    """The first line of an assignment to a plain name; 0 without one, or where it is global."""
    nodes = list(own_nodes(method.body))
    if any(isinstance(it, ast.Global | ast.Nonlocal) and name in it.names for it in nodes):
        return 0
    stored = [
        it.lineno
        for statement in nodes
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.With)
        for it in ast.walk(statement)
        if isinstance(it, ast.Name) and it.id == name and isinstance(it.ctx, ast.Store)
    ]
    return min(stored, default=0)


def _arguments(method: ast.FunctionDef) -> list[str]:
    given = method.args
    return [it.arg for it in (*given.posonlyargs, *given.args, *given.kwonlyargs)][1:]


def _setters(kind: type, name: str) -> Iterator[_Setter]:
    """The methods of a class of the user's that assign it, once each; none where it is deleted."""
    for it in _methods(kind, name):
        if line := _line_in(it.method, name):
            yield _Setter(it.method, it.at(line))


@dataclass(frozen=True)
class _Method:
    method: ast.FunctionDef
    named: str
    file: Path
    first: int  # line of the class

    def at(self, line: int) -> str:
        """`nets.Data.setup (nets.py:40)`."""
        return f"{self.named}.{self.method.name} ({self.file}:{self.first + line - 1})"


def _methods(kind: type, name: str) -> Iterator[_Method]:
    """The methods of a class of the user's; none where its text may delete that attribute."""
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
    named = shown_class(kind)
    for method in tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []:
        if isinstance(method, ast.FunctionDef):
            yield _Method(method, named, file, first)


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


def value_of_attribute(kind: type, name: str) -> tuple[str, ast.expr | None]:
    """`nets.py:40` and what the line there gives it, of the one that gives more than an empty list.

    Empty where no line of the class's does; without the value where several do. A base's lines
    count where the class has none.
    """
    for base in kind.__mro__:
        lines = [(it, node) for it in _methods(base, name) for node in _giving(it.method, name)]
        told = [it for it in lines if ast.unparse(it[1].value or it[1]) not in _EMPTY]
        if lines:
            method, node = (told or lines)[0]
            place = method.at(node.lineno).partition("(")[2].rstrip(")")
            return place, node.value if len(told) == 1 else None
    return "", None


def text_of_class(kind: type) -> str:
    """Of a class and its bases of the user's, as `ast.unparse` writes it; empty if it is hidden."""
    texts = []
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in _LIBRARIES:
            continue
        try:
            texts.append(ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(base)))))
        except (OSError, TypeError, SyntaxError):
            return ""
    return "\n".join(texts)


def _giving(method: ast.FunctionDef, name: str) -> Iterator[ast.Assign | ast.AnnAssign]:
    """The lines `self.NAME = ...`."""
    for node in ast.walk(method):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if f"self.{name}" in map(ast.unparse, targets):
                yield node
