"""A `collate_fn` that a DataLoader cannot call, or that gives it no batch: told from the text."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_train.config.fit.sure_loaders import SureLoader, sure_loaders
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import locate, method_of, place_of
from hpc_train.config.python_text.method_signatures import gives_value

_OF_SAMPLES = re.compile(r"batch\w*|samples?|items?|examples?|data|rows?|instances?|features")


@dataclass(frozen=True)
class Collate:
    """A function, or a method, that a loader has.

    Attributes:
        name: As the config would name it.
        place: `file:line` of its def.
        is_method: Whether its first argument is self.
    """

    name: str
    place: str
    function: ast.FunctionDef
    is_method: bool


def wrong_collate(loaded: LoadedConfig, path: Sequence[str]) -> tuple[str, str]:
    """What is wrong with one that a loader of a fit surely has, and what to write; or empty."""
    for loader in sure_loaders(loaded, path):
        found = _collate(loader, path)
        if found is None or found.function.decorator_list:
            continue
        if hint := of_one_list(found.function, is_method=found.is_method):
            said = f"{found.name} ({found.place}) takes more than one argument, and"
            said = f"{said} {loader.said(path)} gives it one list of samples"
            return said, hint
        if gives_value(found.function) is False:
            said = f"{found.name} ({found.place}) returns nothing"
            return f"{said}, so that {loader.said(path)} gives no batch", with_batch(found.function)
    return "", ""


def of_one_list(function: ast.FunctionDef, *, is_method: bool = False) -> str:
    """What to write for a function that needs several values; empty where one will do."""
    given = function.args
    names = [it.arg for it in (*given.posonlyargs, *given.args)][is_method:]
    needed = names[: len(names) - len(given.defaults)]
    if len(needed) < 2 or given.kwonlyargs or given.vararg:
        return ""
    if _OF_SAMPLES.fullmatch(needed[0]):
        others = ", ".join(f"{it}=..." for it in needed[1:])
        owner = "self." if is_method else ""
        return f"give it the others: collate_fn=functools.partial({owner}{function.name}, {others})"
    taken = "self, batch" if is_method else "batch"
    return (
        f"write def {function.name}({taken}), and begin it with {', '.join(needed)} = zip(*batch)"
    )


def with_batch(function: ast.FunctionDef) -> str:
    """`end it with return x, y`, of the last names that it makes."""
    made = [
        it.targets[0].id
        for it in function.body
        if isinstance(it, ast.Assign) and isinstance(it.targets[0], ast.Name)
    ]
    last = function.body[-1]
    if made and isinstance(last, ast.Assign) and len(made) == 2:
        return f"end it with return {', '.join(made)}"
    return "end it with return BATCH, of what it makes"


def _collate(loader: SureLoader, path: Sequence[str]) -> Collate | None:
    value = loader.given("collate_fn")
    if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self":
        found = method_of(loader.data, value.attr, path)
        if found is None:
            return None
        place = place_of(found[0], found[1].lineno, path)
        return Collate(f"{loader.data}.{value.attr}", place, found[1], is_method=True)
    if not isinstance(value, ast.Name) or _is_local(value.id, loader.method):
        return None
    located = locate(f"{loader.located.module}.{value.id}", path)
    function = located.definition if located else None
    if located is None or not isinstance(function, ast.FunctionDef):
        return None
    place = place_of(located, function.lineno, path)
    return Collate(f"{located.module}.{located.name}", place, function, is_method=False)


def _is_local(name: str, method: ast.FunctionDef) -> bool:
    stored = (it for it in ast.walk(method) if isinstance(it, ast.Name | ast.FunctionDef | ast.arg))
    return any(
        (isinstance(it, ast.Name) and it.id == name and isinstance(it.ctx, ast.Store))
        or (isinstance(it, ast.FunctionDef) and it is not method and it.name == name)
        or (isinstance(it, ast.arg) and it.arg == name)
        for it in stored
    )
