"""A schedule that counts the steps of the whole training, and is stepped once an epoch.

"interval: The unit of the scheduler's step size, could also be 'step'. 'epoch' updates the
scheduler on epoch end", and 'epoch' is the default (Lightning's manual, configure_optimizers).
Nothing fails: the rate takes as many steps of its way as there are epochs.
"""

from __future__ import annotations

import ast

from hpc_train.config.late_loaders import ALL_STEPS, written_in
from hpc_train.config.method_signatures import is_of_lightning_alone, methods_of

# By which it may be stepped in another way, or be told when.
_OTHER_WAYS = (
    "interval",
    "lr_scheduler_step",
    "automatic_optimization",
    "lr_schedulers(",
    "super()",
)


def epoch_stepped(definition: ast.ClassDef) -> tuple[int, str, str] | None:
    """The line that makes it, what is wrong with it, and what to write; None where all is well."""
    method = methods_of(definition).get("configure_optimizers")
    text = ast.unparse(definition)
    if method is None or not is_of_lightning_alone(definition):
        return None
    if any(it in text for it in _OTHER_WAYS):
        return None
    counts = written_in(method, attribute=ALL_STEPS)
    for node in method.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        given = [*node.value.args, *(it.value for it in node.value.keywords)]
        name = ast.unparse(node.targets[0])
        kind = ast.unparse(node.value.func).rpartition(".")[2]
        if not kind.endswith("LR") or not any(ast.unparse(it) in counts for it in given):
            continue
        for returned in (it.value for it in ast.walk(method) if isinstance(it, ast.Return)):
            if form := _with_interval(returned, name):
                said = f"makes a {kind} over all steps, and it is stepped once an epoch"
                return node.lineno, said, f"write {form}"
    return None


def _with_interval(returned: ast.expr | None, name: str) -> str:
    """What is returned, with the interval; empty where it does not return the schedule itself."""
    told = f'{{"scheduler": {name}, "interval": "step"}}'
    if isinstance(returned, ast.Dict):
        pairs = zip(returned.keys, returned.values, strict=True)
        keys = [ast.unparse(key) for key, value in pairs if key and ast.unparse(value) == name]
        return f'"lr_scheduler": {told}' if keys == ["'lr_scheduler'"] else ""
    if isinstance(returned, ast.Tuple) and len(returned.elts) == 2:
        optimizers, schedules = map(ast.unparse, returned.elts)
        return f"return {optimizers}, [{told}]" if schedules == f"[{name}]" else ""
    return ""
