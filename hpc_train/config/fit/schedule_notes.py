"""A schedule that `configure_optimizers` returns in a form that Lightning leaves out."""

from __future__ import annotations

import ast

from hpc_train.config.python_text.method_signatures import methods_of

_MEANT = (
    "scheduler",
    "schedulers",
    "lr_schedulers",
    "sched",
    "lr_sched",
    "schedule",
    "lrscheduler",
)


def misnamed_schedule(definition: ast.ClassDef) -> tuple[int, str]:
    """The line and the key under which it stands beside `optimizer`; 0 where none does.

    Lightning warns once of such a key, and trains without the schedule
    (core/optimizer.py, _configure_optimizers).
    """
    method = methods_of(definition).get("configure_optimizers")
    for node in ast.walk(method) if method is not None else ():
        if not isinstance(node, ast.Dict):
            continue
        lines = {str(it.value): it.lineno for it in node.keys if isinstance(it, ast.Constant)}
        wrong = [it for it in lines if it.lower() in _MEANT]
        if "optimizer" in lines and "lr_scheduler" not in lines and wrong:
            return lines[wrong[0]], wrong[0]
    return 0, ""
