"""A OneCycleLR that is not told how many steps it has: what to write, and what to return."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_values import failing_line
from hpc_train.training.failures.users_method import lines_of, own_method, parsed

_SAID = "You must define either total_steps OR (epochs AND steps_per_epoch)"
_MAKES = "configure_optimizers"
_TOTAL = "total_steps=self.trainer.estimated_stepping_batches"
_OF_LOOP = "give total_steps, how often its step() is called: epochs * len(loader) of once a batch"
_PARTS = ("epochs", "steps_per_epoch")
_IN_DICT = '"interval": "step" beside "scheduler" in what configure_optimizers returns'
_LONGEST = 160  # characters of a line that is written anew


def endless_schedule(error: BaseException) -> str:
    """What to write; empty where the error is of something else."""
    if not isinstance(error, ValueError) or _SAID not in str(error):
        return ""
    frame, nodes = failing_line(error) or (None, [])
    calls = [it for it in nodes if isinstance(it, ast.Call) and _is_made(it)]
    owner: Any = frame.f_locals.get("self") if frame else None
    if frame is None or len(calls) != 1 or own_method(owner, _MAKES) is None:
        return _OF_LOOP
    if not hasattr(type(owner), "automatic_optimization"):  # of Lightning's LightningModule
        return _OF_LOOP
    parts = [f"{it.arg}={ast.unparse(it.value)}" for it in calls[0].keywords if it.arg in _PARTS]
    total = f"write {_TOTAL}{f' in place of {parts[0]}' if parts else ''}"
    if not owner.automatic_optimization:
        return total
    back = _returned(owner, calls[0], frame)
    return f"{total}, and {back}" if back else total


def _is_made(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] == "OneCycleLR"


def _returned(owner: Any, call: ast.Call, frame: FrameType) -> str:
    """The return with the schedule stepped once a step; empty where it is so already."""
    method = parsed(lines_of(own_method(owner, _MAKES))[0])
    nodes = [*ast.walk(method)] if method else []
    returned = [it.value for it in nodes if isinstance(it, ast.Return) and it.value]
    if frame.f_code.co_name != _MAKES or len(returned) != 1:
        return _IN_DICT
    made = ast.unparse(call)
    names = [
        ast.unparse(it.targets[0])
        for it in nodes
        if isinstance(it, ast.Assign) and ast.unparse(it.value) == made
    ]
    if any(_is_stepped(it) for it in nodes):
        return ""
    written = _with_interval(returned[0], {made, *names})
    return f"return {written}" if written and len(written) <= _LONGEST else _IN_DICT


def _is_stepped(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "step"


def _with_interval(value: ast.expr, schedules: set[str]) -> str:
    """`[opt], [{"scheduler": sched, "interval": "step"}]`; empty of another form."""
    if isinstance(value, ast.Tuple) and len(value.elts) == 2:
        optimizers, held = value.elts
        if not isinstance(held, ast.List) or [*map(ast.unparse, held.elts)][1:]:
            return ""
        if held.elts and (made := _in_dict(held.elts[0], schedules)):
            return f"{ast.unparse(optimizers)}, [{made}]"
    if not isinstance(value, ast.Dict):
        return ""
    pairs = []
    for key, it in zip(value.keys, value.values, strict=True):
        is_schedule = isinstance(key, ast.Constant) and key.value == "lr_scheduler"
        made = _in_dict(it, schedules) if is_schedule else ast.unparse(it)
        if key is None or not made:
            return ""
        pairs.append(f"{_quoted(key)}: {made}")
    return f"{{{', '.join(pairs)}}}" if '"lr_scheduler"' in map(_quoted, value.keys) else ""


def _in_dict(value: ast.expr, schedules: set[str]) -> str:
    """`{"scheduler": sched, "interval": "step"}`, of the schedule, or of a dict that has it."""
    if ast.unparse(value) in schedules:
        return f'{{"scheduler": {_with_total(value)}, "interval": "step"}}'
    if not isinstance(value, ast.Dict):
        return ""
    pairs = [
        f"{_quoted(key)}: {_with_total(it)}"
        for key, it in zip(value.keys, value.values, strict=True)
        if _quoted(key) != '"interval"'
    ]
    return f'{{{", ".join(pairs)}, "interval": "step"}}' if None not in value.keys else ""


def _with_total(value: ast.expr) -> str:
    """The schedule; its call, of one that is made in the return, with its total."""
    written = ast.unparse(value)
    if not isinstance(value, ast.Call) or not _is_made(value):
        return written
    named = [it for it in value.keywords if it.arg not in _PARTS]
    given = ", ".join([*map(ast.unparse, (*value.args, *named)), _TOTAL])
    return f"{ast.unparse(value.func)}({given})"


def _quoted(key: ast.expr | None) -> str:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return f'"{key.value}"'
    return ast.unparse(key) if key else ""
