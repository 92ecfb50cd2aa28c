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
# torch's, which make a list of what they are given: 'method' object is not iterable.
_OPTIMIZERS = (
    *("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "NAdam"),
    *("RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam"),
)
_OF_MODULES = ("parameters", "named_parameters")


def bare_methods(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """The line of each such statement, what is wrong with it, and what to write."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Attribute) and value.attr in _METHODS:
            name = ast.unparse(value)
            said = f"names {name} and does not call it, which does nothing"
            yield value.lineno, said, f"write {name}()"
        elif isinstance(node, ast.Call) and (given := _bare_parameters(node)):
            made = ast.unparse(node.func)
            said = f"gives {made} the method {given} itself, and no parameters"
            yield node.lineno, said, f"write {given}()"


def _bare_parameters(call: ast.Call) -> str:
    """`self.parameters` of `Adam(self.parameters, lr=...)`; empty for another call."""
    if ast.unparse(call.func).rpartition(".")[2] not in _OPTIMIZERS:
        return ""
    named = [it.value for it in call.keywords if it.arg == "params"]
    given = [*call.args[:1], *named][:1]
    is_bare = given and isinstance(given[0], ast.Attribute) and given[0].attr in _OF_MODULES
    return ast.unparse(given[0]) if is_bare else ""
