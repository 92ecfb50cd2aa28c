"""`self.trainer.max_steps` in a model's schedule, where a config gives none: it is -1 then.

OneCycleLR refuses that in the job; CosineAnnealingLR(T_max=-1) takes it and learns by it. Source:
Lightning's Trainer, max_steps and estimated_stepping_batches.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from hpc_train.config.python_text.method_signatures import methods_of

_ASKED = ("self.trainer.max_steps", "trainer.max_steps")


def unset_max_steps(definition: ast.ClassDef, trainer: Mapping[str, Any]) -> int:
    """The line of configure_optimizers that gives it to a schedule; 0 where it is set or asked."""
    method = methods_of(definition).get("configure_optimizers")
    if method is None or trainer.get("max_steps") not in (None, -1):
        return 0
    asked = (it for it in ast.walk(method) if isinstance(it, ast.Compare | ast.If | ast.IfExp))
    if any(map(_asks, asked)):
        return 0
    calls = [it for it in ast.walk(method) if isinstance(it, ast.Call)]
    given = [one for it in calls for one in (*it.args, *(word.value for word in it.keywords))]
    return next((it.lineno for it in given if ast.unparse(it) in _ASKED), 0)


def _asks(node: ast.AST) -> bool:
    return "max_steps" in ast.unparse(node)
