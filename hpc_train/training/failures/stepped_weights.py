"""Weights that an optimizer stepped between the forward pass and a backward pass that needs them.

As of a GAN whose scores are used for both losses. torch names no step: of a weight it says that it
is of a later version, of a matrix as a view (`AsStrided`) or with no operation at all.
"""

from __future__ import annotations

import ast
import re
import traceback
from types import FrameType

from hpc_train.training.failures.frame_text import is_users, nodes_of, shown_file
from hpc_train.training.failures.placed_fix import PlacedFix

_SAID = "modified by an inplace operation"
_OPERATION = re.compile(r"which is output \d+ of (?P<name>\w+?)(?:Backward\d*)?,")
_VIEWS = ("T", "AsStrided", "Transpose")  # as which the weights of a layer come in
_BACKWARD = ("backward", "manual_backward")


def stepped_weights(error: BaseException) -> PlacedFix:
    """The step that stands in front of the backward pass that failed; its place is the step's."""
    if not isinstance(error, RuntimeError) or _SAID not in str(error):
        return PlacedFix()
    operation = _OPERATION.search(str(error))
    if operation and operation["name"] not in _VIEWS:
        return PlacedFix()
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        if is_users(frame.f_code.co_filename):
            return _of_step(frame, line)
    return PlacedFix()


def _of_step(frame: FrameType, line: int) -> PlacedFix:
    """The last step above the line, where a backward pass of the same function is above that."""
    calls = [
        it
        for it in nodes_of(frame)
        if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute) and it.lineno < line
    ]
    steps = [it for it in calls if _name(it) == "step" and not _is_schedule(it)]
    if not steps:
        return PlacedFix()
    step = max(steps, key=lambda it: it.lineno)
    if not any(_name(it) in _BACKWARD and it.lineno < step.lineno for it in calls):
        return PlacedFix()
    file = frame.f_code.co_filename
    told = f"{ast.unparse(step)} ({shown_file(file)}:{step.lineno})"
    retained = _retained(calls)
    also = f", and leave {retained} out" if retained else ""
    return PlacedFix(
        f"{file}:{step.lineno}",
        f"{told} changes weights that this backward pass needs as they were: behind that step call"
        f" the model anew for this loss{also}; or call both backward passes, then both steps",
    )


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_schedule(call: ast.Call) -> bool:
    return "sch" in ast.unparse(call.func).lower()


def _retained(calls: list[ast.Call]) -> str:
    given = [it for call in calls if _name(call) in _BACKWARD for it in call.keywords]
    return "retain_graph=True" if any(it.arg == "retain_graph" for it in given) else ""
