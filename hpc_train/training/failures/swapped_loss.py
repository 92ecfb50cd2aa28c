"""A loss of class numbers that is given the labels first, and the logits second.

torch's cross_entropy takes `input` and `target` in this order (torch.nn.functional.cross_entropy),
and fails within the softmax of the labels, whose words say nothing of them.
"""

from __future__ import annotations

import ast
import re

from hpc_train.training.failures.frame_values import failing_line, shape_of
from hpc_train.training.failures.layers import frames_of

_OF_NUMBERS = re.compile(r"softmax\w*\" not implemented for '(?:Long|Int|Short|Byte|Char|Bool)'")
_LOSSES = ("cross_entropy", "nll_loss")


def swapped_loss(error: BaseException) -> str:
    """What to write; empty where the two are not surely each other."""
    if not isinstance(error, RuntimeError) or not _OF_NUMBERS.search(str(error)):
        return ""
    inner = [it for it in frames_of(error) if it.f_code.co_name in _LOSSES]
    held = inner[-1].f_locals if inner else {}
    labels, logits = held.get("input"), held.get("target")
    rows, classes = shape_of(labels), shape_of(logits)
    if rows is None or classes is None or len(classes) != len(rows) + 1:
        return ""
    if not getattr(getattr(logits, "dtype", None), "is_floating_point", False):
        return ""
    said = "the labels stand in the place of the logits"
    _, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and len(it.args) == 2]
    made = [it for it in calls if _is_loss(it.func)]
    if len(made) != 1:
        return f"{said}: the logits come first, and the labels second"
    first, second = map(ast.unparse, made[0].args)
    return f"{said}: write {ast.unparse(made[0].func)}({second}, {first})"


def _is_loss(function: ast.expr) -> bool:
    """`F.cross_entropy`, `nn.CrossEntropyLoss()`, `self.loss` and the like."""
    name = ast.unparse(function).lower()
    return any(it in name for it in ("entropy", "nll", "loss", "criterion"))
