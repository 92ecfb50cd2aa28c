"""Which modules a script trains, by the optimizers that it makes, as its text tells."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WRAP = "torch.nn.parallel.DistributedDataParallel"
_METHODS = ("parameters", "named_parameters")
_NO_CLASS = re.compile(r"(?:\w+\.)*[a-z_]\w*")  # as clip_grad_norm_


@dataclass(frozen=True)
class TrainedModules:
    """Modules that one optimizer trains.

    Attributes:
        models: Their names.
        optimizer: Its name, or the place that it is kept in.
        line: The last one of the statement that makes it.
        scope: Of the body that this statement stands in: the same for all in it.
    """

    models: tuple[str, ...]
    optimizer: str
    line: int
    scope: int


def trained_modules(tree: ast.Module) -> list[TrainedModules]:
    """Of each optimizer that the script makes, by line."""
    found = list(_optimizers(tree))
    stepped = [it for it in found if it.optimizer in _stepped(tree)]
    return stepped or found[:1]


def wraps_behind(trained: Sequence[TrainedModules]) -> str:
    """The lines that wrap each module, and where they stand."""
    by_scope: dict[int, tuple[int, dict[str, None]]] = {}
    for it in trained:
        _, names = by_scope.setdefault(it.scope, (it.line, {}))
        by_scope[it.scope] = it.line, names | dict.fromkeys(it.models)
    parts = []
    for line, names in by_scope.values():
        parts.append(f"{in_words([f'{it} = {WRAP}({it})' for it in names])} behind line {line}")
    return ", and ".join(parts)


def setups_behind(trained: Sequence[TrainedModules], fabric: str) -> str:
    """The lines that have a Fabric set up each module with its optimizer, and where they stand."""
    parts = []
    for it in trained:
        write = [f"{name} = {fabric}.setup_module({name})" for name in it.models]
        write.append(f"{it.optimizer} = {fabric}.setup_optimizers({it.optimizer})")
        if len(it.models) == 1:
            names = f"{it.models[0]}, {it.optimizer}"
            write = [f"{names} = {fabric}.setup({names})"]
        parts.append(f"{in_words(write)} behind line {it.line}")
    return ", and ".join(parts)


def in_words(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def made_by_calls(tree: ast.Module) -> list[tuple[ast.Assign, ast.Call]]:
    """What is made by calls and has a name, by line."""
    made = [
        (it, it.value)
        for it in ast.walk(tree)
        if isinstance(it, ast.Assign) and isinstance(it.value, ast.Call)
    ]
    return sorted(made, key=lambda it: it[0].lineno)


def _optimizers(tree: ast.Module) -> Iterator[TrainedModules]:
    scopes = {
        id(child): id(node)
        for node in ast.walk(tree)
        for body in (getattr(node, name, None) for name in ("body", "orelse"))
        for child in (body if isinstance(body, list) else ())
    }
    others = []
    for assigned, call in made_by_calls(tree):
        given = [*call.args[:1], *(it.value for it in call.keywords if it.arg == "params")]
        models = tuple(dict.fromkeys(name for it in given for name in _models_of(it)))
        target, line = ast.unparse(assigned.targets[0]), assigned.end_lineno or assigned.lineno
        trained = TrainedModules(models, target, line, scopes.get(id(assigned), 0))
        if models and _NO_CLASS.fullmatch(ast.unparse(call.func)):
            others.append(trained)  # a function may make one
        elif models:
            yield trained
    yield from others


def _models_of(given: ast.expr) -> Iterator[str]:
    """`net` of `net.parameters()`, also within a list or a chain; none of another expression."""
    calls = [it for it in ast.walk(given) if isinstance(it, ast.Call)]
    for call in sorted(calls, key=lambda it: (it.lineno, it.col_offset)):
        called = call.func
        if isinstance(called, ast.Attribute) and called.attr in _METHODS:
            owner = called.value
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            # A model may be `self`, which is wrapped where it is made.
            yield from [owner.id] if isinstance(owner, ast.Name) and owner.id != "self" else []


def _stepped(tree: ast.Module) -> set[str]:
    """What `step` is called of, or is given to a scaler's."""
    calls = [it for it in ast.walk(tree) if isinstance(it, ast.Call)]
    return {
        ast.unparse(it)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step"
        for it in (call.func.value, *call.args)
    }
