"""What a script's own Trainers ask for, as far as its text tells; nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

_HOMES = ("pytorch_lightning", "lightning", "lightning.pytorch")


def places_asked_for(tree: ast.Module) -> dict[str, tuple[int, int]]:
    """The least `devices` and `num_nodes` that every Trainer of a script asks for, with its line.

    A name is missing where one of them leaves it open, or says it by anything but a constant.
    """
    calls = list(_trainers(tree))
    asked: dict[str, tuple[int, int]] = {}
    for name in ("devices", "num_nodes"):
        counts = [(_count(call, name), call.lineno) for call in calls]
        known = [(count, line) for count, line in counts if count is not None]
        if known and len(known) == len(calls):
            asked[name] = min(known)
    return asked


def _trainers(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of Lightning's Trainer by a name that an import of it gives."""
    modules, names = _imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        made = node.func
        if isinstance(made, ast.Name) and names.get(made.id) == "Trainer":
            yield node
        elif isinstance(made, ast.Attribute) and made.attr == "Trainer":
            yield from [node] if ast.unparse(made.value) in modules else []


def _imported(tree: ast.Module) -> tuple[set[str], Mapping[str, str]]:
    """Names that mean a package of Lightning, and those that mean something of it."""
    modules: set[str] = set()
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {it.asname or it.name for it in node.names if it.name in _HOMES}
        elif isinstance(node, ast.ImportFrom) and node.module in _HOMES:
            names |= {it.asname or it.name: it.name for it in node.names}
    return modules | {name for name, what in names.items() if what == "pytorch"}, names


def _count(call: ast.Call, name: str) -> int | None:
    """A constant number, also as text, or the length of a list of constants."""
    value = next((word.value for word in call.keywords if word.arg == name), None)
    if isinstance(value, (ast.List, ast.Tuple)):
        return (
            len(value.elts) if not any(isinstance(it, ast.Starred) for it in value.elts) else None
        )
    text = str(value.value) if isinstance(value, ast.Constant) else ""
    return int(text) if text.isdecimal() else None
