"""Outputs of an epoch's batches that are stacked, where the last batch is smaller."""

from __future__ import annotations

import ast
import re
import traceback

from hpc_train.training.failures.frame_values import failing_line

_SAID = re.compile(
    r"stack expects each tensor to be equal size, but got "
    r"\[(?P<a>\d+)(?P<rest>(?:, \d+)*)\] at entry \d+ and \[(?P<b>\d+)(?P=rest)\]"
    r"|all input arrays must have the same shape"
)
_END = re.compile(r"(?:on_)?(?:train|training|validation|test|predict)_epoch_end")
_CALLS = {
    "torch.stack": "torch.cat",
    "np.stack": "np.concatenate",
    "numpy.stack": "numpy.concatenate",
}


def stacked_batches(error: BaseException) -> str:
    """What to write for the stack; empty where it is no hook of an epoch's end that makes it."""
    found = _SAID.search(str(error))
    functions = [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]
    line = failing_line(error)
    if not found or line is None or not any(_END.fullmatch(it) for it in functions):
        return ""
    calls = {ast.unparse(it.func) for it in line[1] if isinstance(it, ast.Call)}
    stacks = [it for it in _CALLS if it in calls]
    if len(stacks) != 1:
        return ""
    sizes = f", of {found['a']} and {found['b']} samples," if found["a"] else ""
    return (
        f"the batches{sizes} differ in length, as the last of an epoch does: "
        f"write {_CALLS[stacks[0]]} for {stacks[0]}"
    )
