"""A `forward` that returns nothing, in a class whose object is called for what it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpc_train.config.python_text.class_kind import Located, place_of
from hpc_train.config.python_text.method_signatures import (
    gives_value,
    is_of_lightning_alone,
    methods_of,
    own_nodes,
    with_return,
)

_CALLS = ("self", "self.forward")
_BLOCKS = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.FunctionDef)
_OTHER_WAYS = ("__call__", "forward =", "setattr(", "__getattr", "_hook(")


@dataclass(frozen=True)
class SilentForward:
    """What is wrong, and what to write.

    Attributes:
        is_sure: Whether each training step ends there: an operation of torch's gets None.
    """

    said: str
    hint: str
    is_sure: bool


def silent_forward(found: Located | None, path: Sequence[str]) -> SilentForward | None:
    """Of a model whose training_step works with what its own forward gives; None for others."""
    definition = found.definition if found else None
    if found is None or not isinstance(definition, ast.ClassDef):
        return None
    if not is_of_lightning_alone(definition):
        return None
    methods = methods_of(definition)
    forward, step = methods.get("forward"), methods.get("training_step")
    if forward is None or step is None or gives_value(forward) is not False:
        return None
    if any(it in ast.unparse(definition) for it in _OTHER_WAYS):
        return None
    imports = found.names.imports if found.names else {}
    used = sorted(_uses(step, imports), key=lambda it: not it[1])
    if not used:
        return None
    line, is_sure = used[0]
    place = place_of(found, forward.lineno, path)
    said = f"has a forward ({place}) that returns nothing, and training_step works with it"
    said += f" ({place_of(found, line, path)})"
    return SilentForward(said, with_return(forward, "OUT"), is_sure)


def _uses(step: ast.FunctionDef, imports: Mapping[str, str]) -> Iterator[tuple[int, bool]]:
    """Lines of each run of a step that do something with a call of the model, and if that fails."""
    names: set[str] = set()
    for statement in step.body:
        if isinstance(statement, _BLOCKS):
            return
        for node in own_nodes([statement]):
            yield from ((it.lineno, sure) for it, sure in _parts(node, imports) if _is(it, names))
        if isinstance(statement, ast.Assign):
            stored = {ast.unparse(it) for it in statement.targets}
            names = names | stored if _is(statement.value, names) else names - stored


def _parts(node: ast.AST, imports: Mapping[str, str]) -> Iterator[tuple[ast.expr, bool]]:
    """What a node works with, and whether it fails for None."""
    if isinstance(node, ast.Call):
        first, _, rest = ast.unparse(node.func).partition(".")
        full = f"{imports.get(first, '')}.{rest}"
        yield from ((it, full.startswith("torch.")) for it in node.args)
    elif isinstance(node, ast.BinOp):
        yield from ((it, True) for it in (node.left, node.right))
    elif isinstance(node, ast.Attribute | ast.Subscript):
        yield node.value, True


def _is(node: ast.expr, names: set[str]) -> bool:
    """Whether it is what the model's forward gave."""
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _CALLS
