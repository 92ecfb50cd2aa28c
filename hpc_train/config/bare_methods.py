"""A method that a line names and does not call, as `optimizer.step` without its brackets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Of optimizers, losses, models, trainers and process groups: none of them is a property there.
_METHODS = (
    *("step", "zero_grad", "backward", "manual_backward", "clip_gradients", "untoggle_optimizer"),
    *("fit", "validate", "setup", "launch", "barrier", "init_process_group", "set_epoch"),
    *("save_hyperparameters", "log_dict", "update"),
)


def bare_methods(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """The line of each such statement, what is wrong with it, and what to write."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Attribute) and value.attr in _METHODS:
            name = ast.unparse(value)
            said = f"names {name} and does not call it, which does nothing"
            yield value.lineno, said, f"write {name}()"
