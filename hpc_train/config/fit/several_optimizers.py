"""Several optimizers that Lightning 2 leaves to the model, and `optimizer_idx` of Lightning 1.

Source: pytorch_lightning/core/optimizer.py (`_init_optimizers_and_lr_schedulers`): a RuntimeError
where the model's `automatic_optimization` is True, as it is by default.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from hpc_train.config.python_text.method_signatures import (
    is_of_lightning_alone,
    methods_of,
    own_nodes,
)
from hpc_train.config.python_text.modules import full_name

INDEX = "optimizer_idx"
_MADE = re.compile(r"torch\.optim\.(?!lr_scheduler\b)(?:\w+\.)*[A-Z]\w*")
_UNNAMED = "?"
_STEP = "def training_step(self, batch, batch_idx)"


def several_optimizers(
    definition: ast.ClassDef, imports: Mapping[str, str]
) -> tuple[int, list[str]]:
    """The line where configure_optimizers surely returns several, and their names; else 0.

    Args:
        imports: Of the class's file: what its names stand for.
    """
    method = methods_of(definition).get("configure_optimizers")
    if method is None or method.decorator_list or not isinstance(method.body[-1], ast.Return):
        return 0, []
    returns = [it for it in own_nodes(method.body) if isinstance(it, ast.Return)]
    value = returns[0].value if len(returns) == 1 else None
    if isinstance(value, ast.Tuple) and len(value.elts) == 2:
        first, second = value.elts
        value = first if isinstance(first, ast.List) and isinstance(second, ast.List) else value
    made = _made(method, imports)
    elements = value.elts if isinstance(value, (ast.List, ast.Tuple)) else []
    names = [_name_of(it, made, imports) for it in elements]
    names = [f"opt{n}" if name == _UNNAMED else name for n, name in enumerate(names, 1)]
    return (returns[0].lineno, names) if len(names) > 1 and all(names) else (0, [])


def refused_optimizers(definition: ast.ClassDef, imports: Mapping[str, str]) -> tuple[int, str]:
    """The line of several optimizers that Lightning surely refuses, and what to write; else 0."""
    text = ast.unparse(definition)
    if not is_of_lightning_alone(definition) or "automatic_optimization" in text:
        return 0, ""
    if "setattr(" in text:
        return 0, ""
    line, names = several_optimizers(definition, imports)
    groups = 'torch.optim.SGD([{"params": a, "lr": 0.1}, {"params": b, "lr": 0.01}])'
    one = f"for one loss, one optimizer: {groups}; for a loss each, "
    return (line, one + by_hand(names)) if line else (0, "")


def by_hand(names: list[str]) -> str:
    """How a model steps its optimizers itself."""
    first = names[0]
    loss = f"loss{first.removeprefix('opt')}" if first.startswith("opt_") else "loss"
    steps = f"{first}.zero_grad(); self.manual_backward({loss}); {first}.step()"
    return (
        f"write self.automatic_optimization = False in __init__, {_STEP}, and in it"
        f" {', '.join(names)} = self.optimizers() and for each of them its loss and {steps}"
    )


def without_index(
    definition: ast.ClassDef, method: ast.FunctionDef, imports: Mapping[str, str]
) -> str:
    """What to write for a training_step that takes `optimizer_idx`."""
    line, names = several_optimizers(definition, imports)
    if line:
        return f"with the optimizers of line {line} {by_hand(names)}"
    used = [it.lineno for it in ast.walk(method) if isinstance(it, ast.Name) and it.id == INDEX]
    where = f", and take {INDEX} out of line {min(used)}" if used else ""
    return f"with one optimizer write {_STEP}{where}; with several {by_hand(['opt1', 'opt2'])}"


def _made(method: ast.FunctionDef, imports: Mapping[str, str]) -> set[str]:
    """The names that are bound once, to an optimizer of torch's."""
    made: set[str] = set()
    for node in own_nodes(method.body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and is_optimizer(node.value, imports):
                made.add(target.id)
    stored = [
        it.id
        for it in own_nodes(method.body)
        if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
    ]
    return {it for it in made if stored.count(it) == 1}


def _name_of(node: ast.expr, made: set[str], imports: Mapping[str, str]) -> str:
    """The name of an optimizer, `?` for one without; empty where it may be another thing."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        named = {it.value: value for it, value in pairs if isinstance(it, ast.Constant)}
        inner = named.get("optimizer")
        return _name_of(inner, made, imports) if inner else ""
    if isinstance(node, ast.Name):
        return node.id if node.id in made else ""
    return _UNNAMED if is_optimizer(node, imports) else ""


def is_optimizer(node: ast.expr, imports: Mapping[str, str]) -> bool:
    """Whether it makes one of torch's."""
    if not isinstance(node, ast.Call):
        return False
    return bool(_MADE.fullmatch(full_name(ast.unparse(node.func), imports)))
