"""A loop with a Session that steps, or drops its gradients, at each micro batch; from the text.

`session.step_is_due` is true at the last micro batch of a global batch alone. What stands beside
that condition, and not under it, is done at each.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from hpc_train.config.fit.several_optimizers import is_optimizer
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.python_text.modules import Names
from hpc_train.config.scripts.session_calls import opened_session

_OPTIMIZER = re.compile(r"(?:\w+[._])?opt(?:im|imizer)?s?(?:_\w+|\d+)?", re.IGNORECASE)
_SCALER = re.compile(r"(?:\w+[._])?(?:grad_)?scaler")
_LEAVES = (ast.Continue, ast.Break, ast.Return)


def steps_too_early(tree: ast.Module, names: Names) -> Iterator[tuple[int, str, str]]:
    """The line of each, what is wrong with it, and what to write.

    Without `micro_batch_size` a rank takes all of its share at once, and each micro batch is due.
    """
    opened = opened_session(tree)
    sizes = [it.value for it in opened.keywords if it.arg == "micro_batch_size"] if opened else []
    if not sizes or (isinstance(sizes[0], ast.Constant) and sizes[0].value is None):
        return
    made = [it for it in ast.walk(tree) if isinstance(it, ast.Assign)]
    optimizers = {
        ast.unparse(it.targets[0]) for it in made if is_optimizer(it.value, names.imports)
    }
    for loop in (it for it in ast.walk(tree) if isinstance(it, ast.For)):
        session = _session_of(loop)
        due = _due(loop, session) if session else None
        if due is not None:
            yield from _early(loop, due, session, optimizers)


def _session_of(loop: ast.For) -> str:
    """What the session is called whose batches the loop takes; empty of another loop."""
    calls = [it.func for it in ast.walk(loop.iter) if isinstance(it, ast.Call)]
    of = [it for it in calls if isinstance(it, ast.Attribute) and it.attr == "batches"]
    return ast.unparse(of[0].value) if of else ""


def _due(loop: ast.For, session: str) -> ast.If | None:
    """The condition under which the loop counts a step."""
    for node in own_nodes(loop.body):
        if isinstance(node, ast.If) and f"{session}.step_is_due" in ast.unparse(node.test):
            inside = [it for it in own_nodes(node.body) if isinstance(it, ast.Call)]
            if any(ast.unparse(it.func) == f"{session}.stepped" for it in inside):
                return node
    return None


def _early(
    loop: ast.For, due: ast.If, session: str, optimizers: set[str]
) -> Iterator[tuple[int, str, str]]:
    inside = [*own_nodes(loop.body)]
    # One that is made in the loop, as of an attack on the samples, trains nothing that is kept.
    own = {ast.unparse(it.targets[0]) for it in inside if isinstance(it, ast.Assign)}
    calls = [it for it in _at_each(loop.body) if _stepped(it) not in own]
    steps = [it for it in calls if _is_one(_stepped(it), optimizers)]
    drops = [it for it in calls if _is_drop(it, optimizers)]
    # A loop that reads them may add them up by itself.
    reads = any(isinstance(it, ast.Attribute) and it.attr == "grad" for it in inside)
    under = f"under `if {ast.unparse(due.test)}:`"
    write = f"put it {under} (line {due.lineno}), in front of {session}.stepped()"
    if steps:
        said = f"calls {ast.unparse(steps[0])} at each micro batch, and {session}.stepped() {under}"
        yield steps[0].lineno, f"{said}: a step has a part of the global batch", write
    elif drops and not reads:
        said = f"calls {ast.unparse(drops[0])} at each micro batch, and steps {under}"
        yield drops[0].lineno, f"{said}: a step has the gradients of its last one alone", write


def _at_each(body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """The calls that each turn of a loop surely makes, as a statement."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _at_each(statement.body)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            yield statement.value
        if any(isinstance(it, _LEAVES) for it in own_nodes([statement])):
            return


def _stepped(call: ast.Call) -> str:
    """What a call of `step` steps, also by a GradScaler; empty of another call."""
    owner, _, method = ast.unparse(call.func).rpartition(".")
    if method != "step":
        return ""
    return ast.unparse(call.args[0]) if _SCALER.fullmatch(owner) and call.args else owner


def _is_drop(call: ast.Call, optimizers: set[str]) -> bool:
    owner, _, method = ast.unparse(call.func).rpartition(".")
    return method == "zero_grad" and _is_one(owner, optimizers)


def _is_one(name: str, optimizers: set[str]) -> bool:
    return name in optimizers or bool(_OPTIMIZER.fullmatch(name))
