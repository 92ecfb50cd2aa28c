"""A metric of several elements that was logged as one number: told at its self.log.

Lightning refuses it at the epoch's end, outside of the user's frames (lightning_fabric's
utilities/apply_func.py, `convert_tensors_to_scalars`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.unset_attributes import set_in
from hpc_train.training.failures.users_method import lines_of, own_method, parsed
from hpc_train.training.private.logged_several import LoggedSeveral, logged_several

_SAID = "does not contain a single element, thus it cannot be converted to a scalar"
_LOGS = ("self.log", "self.log_dict")
_EACH = {"test_step": "on_test_epoch_end", "training_step": "on_train_epoch_end"}


def several_elements(error: BaseException) -> PlacedFix:
    """Which name has them and why, and what to write; nothing where it is of something else."""
    found = logged_several(error) if isinstance(error, ValueError) and _SAID in str(error) else None
    if found is None:
        return PlacedFix()
    file, line = _place(found)
    count = math.prod(found.shape)
    of = f"self.{found.attribute}" if found.attribute else "the value"
    has = f"{count} numbers" if len(found.shape) == 1 else f"the shape {list(found.shape)}"
    said = f"{found.name!r}, which {found.hook} logs, has {has}: {of}"
    average = _average(found)
    made = set_in(type(found.module), found.attribute.partition(".")[0]) if found.attribute else ""
    said += f" was made with {average}" if average else " is no single number"
    said += f" ({made})" if made else ""
    write = 'write average="macro" there for their mean, or ' if average else ""
    return PlacedFix(f"{file}:{line}" if file else "", f"{said}: {write}{_each(found)}")


def _average(found: LoggedSeveral) -> str:
    """`average=None`, of a metric of torchmetrics' that gives a number for each class."""
    value = getattr(found.metric, "average", "")
    is_torchs = type(found.metric).__module__.startswith("torchmetrics.")
    if not is_torchs or str(value).lower().rpartition(".")[2] != "none":
        return ""
    return "average=None" if value is None else 'average="none"'


def _each(found: LoggedSeveral) -> str:
    """A line that logs each number by its own name, for a metric in the epoch's end."""
    if len(found.shape) != 1:
        return "log numbers that are made of it, each by a name of its own"
    log = f'self.log(f"{found.name}_{{i}}", it)'
    if not found.attribute:
        return f"one number, as its mean(), or {log} for each: for i, it in enumerate(...)"
    metric = f"self.{found.attribute}"
    hook = _EACH.get(found.hook, "on_validation_epoch_end")
    loop = f"for i, it in enumerate({metric}.compute()): {log}"
    return f"in place of that line {loop} in {hook}, and {metric}.reset() below it"


def _place(found: LoggedSeveral) -> tuple[str, int]:
    """The file and the line of the one call that logs the name; of several, the method's."""
    method = own_method(found.module, found.hook)
    lines, first = lines_of(method)
    node = parsed(lines)
    if node is None:
        return "", 0
    file = method.__code__.co_filename
    calls = [it for it in ast.walk(node) if isinstance(it, ast.Call) and _is_log(it)]
    named = [it for it in calls if found.name in _texts(it)] or calls
    return file, first + (named[0].lineno - 1 if len(named) == 1 else 0)


def _is_log(call: ast.Call) -> bool:
    return ast.unparse(call.func) in _LOGS


def _texts(call: ast.Call) -> Iterator[str]:
    for it in ast.walk(call):
        if isinstance(it, ast.Constant) and isinstance(it.value, str):
            yield it.value
