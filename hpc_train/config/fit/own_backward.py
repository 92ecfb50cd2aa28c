"""A backward pass or a step that a training_step takes beside Lightning's own, by its text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hpc_train.config.python_text.method_signatures import (
    is_of_lightning_alone,
    methods_of,
    own_nodes,
)

# With one of these in a class the pass may be its own affair, or be possible twice.
_OWN_WAYS = (
    *("automatic_optimization", "retain_graph", "setattr(", "__getattr", "def backward("),
    *("def optimizer_step(", "def training_step_end(", "def configure_gradient", "checkpoint("),
)
_GIVES = "self.optimizers()"
FIX = (
    "leave it out, and the optimizer's zero_grad() and step(): Lightning does all three; or write"
    " self.automatic_optimization = False in __init__ to do them yourself"
)


def own_backward(definition: ast.ClassDef) -> tuple[str, int] | None:
    """`loss.backward()` and its line, where each training_step takes it and returns that loss.

    Lightning takes a second one of the same graph, which torch refuses. A step of the optimizer
    behind the loss changes what the backward of Lightning needs, or takes an old gradient twice.
    None wherever the class, or a base that is not Lightning's, may train in a way of its own.
    """
    if not is_of_lightning_alone(definition):
        return None
    text = ast.unparse(definition)
    methods = methods_of(definition)
    step, made = methods.get("training_step"), methods.get("configure_optimizers")
    if step is None or made is None or step.decorator_list or any(it in text for it in _OWN_WAYS):
        return None
    optimizers = [it for it in own_nodes(made.body) if isinstance(it, ast.Return)]
    if not optimizers or any(not _is_given(it) for it in optimizers):
        return None  # without one nothing is learned by Lightning
    return _of_step(step.body)


def _of_step(body: Sequence[ast.stmt]) -> tuple[str, int] | None:
    """By the lines that are executed each time, up to the only return."""
    returns = [it for it in own_nodes(body) if isinstance(it, ast.Return | ast.Raise | ast.Yield)]
    if len(returns) != 1 or body[-1] is not returns[0] or not isinstance(body[-1], ast.Return):
        return None
    loss = _loss_of(body[-1].value)
    steps = {f"{name}.step()" for name in (_GIVES, *_optimizers(body))}
    for number, statement in enumerate(body[:-1]):
        text = ast.unparse(statement)
        is_step = text in steps and _is_changed(body[:number], loss)
        if loss and (text == f"{loss}.backward()" or is_step):
            return None if _is_changed(body[number + 1 : -1], loss) else (text, statement.lineno)
    return None


def _optimizers(body: Sequence[ast.stmt]) -> list[str]:
    """The names that are `self.optimizers()` and nothing else in these lines."""
    stored = [
        it.id
        for it in own_nodes(body)
        if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
    ]
    made = [it for it in body if isinstance(it, ast.Assign) and len(it.targets) == 1]
    names = [ast.unparse(it.targets[0]) for it in made if ast.unparse(it.value) == _GIVES]
    return [name for name in names if stored.count(name) == 1]


def _loss_of(value: ast.expr | None) -> str:
    """The name that is returned, also as the "loss" of a dict; else empty."""
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        named = [it for key, it in pairs if isinstance(key, ast.Constant) and key.value == "loss"]
        value = named[0] if len(named) == 1 and None not in value.keys else None
    return value.id if isinstance(value, ast.Name) else ""


def _is_given(returned: ast.Return) -> bool:
    value = returned.value
    return value is not None and not (isinstance(value, ast.Constant) and value.value is None)


def _is_changed(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether a name may be another loss behind these lines, or one without its graph."""
    for it in own_nodes(body):
        if isinstance(it, ast.Name) and it.id == name and not isinstance(it.ctx, ast.Load):
            return True
        if isinstance(it, ast.Attribute) and ast.unparse(it.value) == name and it.attr[-1] == "_":
            return True
    return False
