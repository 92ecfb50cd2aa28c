"""An optimizer of a script that nothing steps, told from the text.

"optimizer.step(): all optimizers implement a step() method, that updates the parameters" (torch's
manual, torch.optim): a backward pass alone computes gradients, and the training learns nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hpc_train.config.fit.several_optimizers import is_optimizer
from hpc_train.config.python_text.modules import Names, full_name

_SCHEDULERS = "torch.optim.lr_scheduler."
# What takes an optimizer and does not step it itself; what it returns may be another's to step.
_TAKES = ("prepare", "setup", "setup_optimizers", "print")


def unstepped_optimizers(tree: ast.Module, names: Names) -> Iterator[tuple[int, str, str]]:
    """The line of each, what is wrong with it, and what to write.

    Said only where each use of the optimizer's name is known, and none can be its step.
    """
    backward = [it for it in ast.walk(tree) if isinstance(it, ast.Call) and _is_backward(it)]
    made = [it for it in ast.walk(tree) if isinstance(it, ast.Assign)]
    schedules = {
        ast.unparse(target)
        for it in made
        if _called(it.value, names).startswith(_SCHEDULERS)
        for target in it.targets
    }
    steps = [it for it in ast.walk(tree) if isinstance(it, ast.Attribute) and "step" in it.attr]
    if not backward or any(ast.unparse(it.value) not in schedules for it in steps):
        return
    for it in made:
        target, kind = it.targets[0], _called(it.value, names).rpartition(".")[2]
        if is_optimizer(it.value, names.imports) and isinstance(target, ast.Name):
            if _is_handed_on(target.id, tree, names):
                continue
            said = f"makes {target.id} ({kind}), and nothing steps it: the weights stay as they are"
            line = backward[0].lineno
            yield it.lineno, said, f"write {target.id}.step() behind line {line}"


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "backward"


def _called(value: ast.expr, names: Names) -> str:
    """The dotted name of what is called there; empty where nothing is."""
    return full_name(ast.unparse(value.func), names.imports) if isinstance(value, ast.Call) else ""


def _is_handed_on(name: str, tree: ast.Module, names: Names) -> bool:
    """Whether anything else than its own attributes and schedules is used of it."""
    known: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            known.add(node.value)
        elif isinstance(node, ast.Call):
            called = _called(node, names)
            if called.startswith(_SCHEDULERS) or called.rpartition(".")[2] in _TAKES:
                known |= {*node.args, *(it.value for it in node.keywords)}
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and node not in known
        for node in ast.walk(tree)
    )
