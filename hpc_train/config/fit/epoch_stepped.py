"""A schedule that counts the steps of the whole training, and is stepped once an epoch.

"interval: The unit of the scheduler's step size, could also be 'step'. 'epoch' updates the
scheduler on epoch end", and 'epoch' is the default (Lightning's manual, configure_optimizers).
Nothing fails: the rate takes as many steps of its way as there are epochs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from hpc_train.config.fit.late_loaders import ALL_STEPS, written_in
from hpc_train.config.python_text.method_signatures import is_of_lightning_alone, methods_of

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
    for it in plain_schedules(definition):
        counts = written_in(it.method, attribute=ALL_STEPS)
        given = [*it.call.args, *(one.value for one in it.call.keywords)]
        if any(ast.unparse(one) in counts for one in given):
            said = f"makes a {it.kind} over all steps, and it is stepped once an epoch"
            return it.call.lineno, said, f"write {it.form}"
    return None


@dataclass(frozen=True, slots=True)
class PlainSchedule:
    """A schedule that `configure_optimizers` returns without saying when it is stepped.

    Attributes:
        kind: Its class, or the function that makes it.
        form: What is returned, with the interval.
    """

    method: ast.FunctionDef
    call: ast.Call
    kind: str
    form: str


def plain_schedules(definition: ast.ClassDef) -> Iterator[PlainSchedule]:
    """Those that Lightning surely steps at each epoch's end."""
    method = methods_of(definition).get("configure_optimizers")
    text = ast.unparse(definition).replace("super().__init__(", "")  # which every model has
    if method is None or not is_of_lightning_alone(definition):
        return
    if any(it in text for it in _OTHER_WAYS):
        return
    for node in method.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        name = ast.unparse(node.targets[0])
        kind = ast.unparse(node.value.func).rpartition(".")[2]
        if not kind.endswith(("LR", "_schedule_with_warmup")):
            continue
        for returned in (it.value for it in ast.walk(method) if isinstance(it, ast.Return)):
            if form := _with_interval(returned, name):
                yield PlainSchedule(method, node.value, kind, form)
                break


def _with_interval(returned: ast.expr | None, name: str) -> str:
    """What is returned, with the interval; empty where it does not return the schedule itself."""
    told = f'{{"scheduler": {name}, "interval": "step"}}'
    if isinstance(returned, ast.Dict):
        pairs = zip(returned.keys, returned.values, strict=True)
        keys = [ast.unparse(key) for key, value in pairs if key and ast.unparse(value) == name]
        if keys == ["'lr_scheduler'"]:
            return f'"lr_scheduler": {told}'
        inner = [it for it in returned.values if isinstance(it, ast.Dict)]
        is_inside = len(inner) == 1 and f"'scheduler': {name}" in ast.unparse(inner[0])
        return '"interval": "step" beside "scheduler"' if is_inside else ""
    if isinstance(returned, ast.Tuple) and len(returned.elts) == 2:
        optimizers, schedules = map(ast.unparse, returned.elts)
        return f"return {optimizers}, [{told}]" if schedules == f"[{name}]" else ""
    return ""
