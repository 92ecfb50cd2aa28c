"""What code asks of an object of Lightning's or torch's that another kind of object has.

As `self.logger.experiment.log({...})`, which is of Weights & Biases, where TensorBoard logs, and
`self.optimizers().lr`, which a parameter group has.
"""

from __future__ import annotations

import ast
from typing import Any

from hpc_train.training.failures.frame_text import nodes_of, shown_file
from hpc_train.training.failures.frame_values import failing_line, value_of
from hpc_train.training.failures.users_method import own_method
from hpc_train.training.known_loggers import BOARD, CSV, Logging, logging_by, wanted_by

_RATES = ("lr", "learning_rate", "rate", "current_lr")
_LEARNING_RATE = "lr"


def foreign_call(error: BaseException, *, of_config: bool) -> str:
    """What to write; empty where the error is of something else.

    Args:
        of_config: Whether a config names the loggers.
    """
    if not isinstance(error, AttributeError) or not error.name:
        return ""
    if error.obj is None:
        return _of_no_schedule(error)
    owner, name = error.obj, error.name
    if isinstance(owner, type):
        return ""
    if has := logging_by(owner):
        return _of_logger(has, name, of_config=of_config)
    return _of_optimizer(owner, name, _written(error, name))


def _of_logger(has: Logging, name: str, *, of_config: bool) -> str:
    wanted = wanted_by(name, of=has)
    if wanted is None:
        return ""
    other = f"loggers: [{wanted.word}, csv]"
    if has is CSV:
        return f"write {other}"
    if not of_config:
        other = f"Trainer(logger={wanted.logger}(...))"
    says = f"{name} is of {wanted.service}, and this logger is {has.service}'s"
    same = "self.log(NAME, VALUE) for a number, "
    if name in wanted.images and has is BOARD:
        same = "self.logger.experiment.add_image(NAME, TENSOR), "
    return f"{says}: write {same}or {other}"


def _of_optimizer(owner: Any, name: str, written: str) -> str:
    """Of an optimizer or a schedule, or of a list of them."""
    if isinstance(owner, list | tuple):
        kinds = {type(it).__name__ for it in owner if _groups(it) or _is_schedule(it)}
        if not owner or len(kinds) != 1 or not all(_has(it, name) for it in owner):
            return ""
        which = f"{written or 'it'}[0].{name}"
        return f"there are {len(owner)} of them, in a {type(owner).__name__}: write {which}"
    if _is_schedule(owner):
        rate = f"{written or 'SCHEDULE'}.get_last_lr()[0]"
        return f"write {rate}" if name in _RATES else ""
    groups = _groups(owner)
    key = name if groups and name in groups[0] else ""
    if groups and name in _RATES and _LEARNING_RATE in groups[0]:
        key = _LEARNING_RATE
    return f'write {written or "OPTIMIZER"}.param_groups[0]["{key}"]' if key else ""


def _of_no_schedule(error: AttributeError) -> str:
    """Of `self.lr_schedulers()`: None where configure_optimizers returns no schedule."""
    frame, nodes = failing_line(error) or (None, [])
    if frame is None:
        return ""
    asked = [it.value for it in nodes if isinstance(it, ast.Attribute) and it.attr == error.name]
    names = {it.id for it in asked if isinstance(it, ast.Name)}
    for it in nodes_of(frame):
        targets = it.targets if isinstance(it, ast.Assign) else [getattr(it, "target", None)]
        if isinstance(it, ast.Assign | ast.AnnAssign) and it.value is not None:
            is_meant = any(isinstance(of, ast.Name) and of.id in names for of in targets)
            asked += [it.value] if is_meant else []
    for call in (it for it in asked if isinstance(it, ast.Call)):
        if not ast.unparse(call.func).endswith(".lr_schedulers"):
            continue
        assert isinstance(call.func, ast.Attribute)
        method = own_method(value_of(call.func.value, frame), "configure_optimizers")
        code = getattr(method, "__code__", None)
        place = f" ({shown_file(code.co_filename)}:{code.co_firstlineno})" if code else ""
        says = f"{ast.unparse(call)} gives None: configure_optimizers{place} returns no schedule"
        return f"{says}; write return [optimizer], [scheduler] there, or leave this line out"
    return ""


def _groups(owner: Any) -> list[dict[str, Any]]:
    """The parameter groups of an optimizer; none of another object."""
    held = getattr(owner, "__dict__", {})
    groups = held.get("param_groups")
    if groups is None:  # of a LightningOptimizer
        groups = getattr(held.get("_optimizer"), "__dict__", {}).get("param_groups")
    if isinstance(groups, list) and groups and isinstance(groups[0], dict):
        return groups
    return []


def _is_schedule(owner: Any) -> bool:
    return hasattr(type(owner), "get_last_lr") and "optimizer" in getattr(owner, "__dict__", {})


def _has(owner: Any, name: str) -> bool:
    return hasattr(type(owner), name) or name in getattr(owner, "__dict__", {})


def _written(error: AttributeError, name: str) -> str:
    """What the innermost line of the user's asks for it, as it is written there."""
    _, nodes = failing_line(error) or (None, [])
    asked = {
        ast.unparse(it.value) for it in nodes if isinstance(it, ast.Attribute) and it.attr == name
    }
    return asked.pop() if len(asked) == 1 else ""
