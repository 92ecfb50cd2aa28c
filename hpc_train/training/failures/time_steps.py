"""A recurrent layer's output of all time steps, where the target has one value of a sequence."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.frame_values import attribute_of, value_of
from hpc_train.training.failures.users_method import lines_of, own_method, parsed

_RECURRENT = ("LSTM", "GRU", "RNN")  # each gives (output of all steps, state)


def last_time_step(
    call: ast.expr | None, frame: FrameType, out: Sequence[int], wanted: Sequence[int]
) -> str:
    """The call to write with the last time step alone; empty where that is not sure.

    Args:
        call: What the output is of, in a frame: `self(x)`, `self.net(x)`, `self.predict(x)`.
        out: The shape of it, [batch, time, ...].
        wanted: The shape of the target.
    """
    is_of_all = len(out) == len(wanted) + 1 and [out[0], *out[2:]] == [*wanted]
    if not is_of_all or not isinstance(call, ast.Call):
        return ""
    owner, name = value_of(call.func, frame), "forward"
    if isinstance(call.func, ast.Attribute) and not hasattr(owner, "named_modules"):
        owner, name = value_of(call.func.value, frame), call.func.attr
    method = own_method(owner, name)
    lines, first = lines_of(method)
    definition = parsed(lines)
    uses = [*_uses(definition, owner)] if definition else []
    if len(uses) != 1:
        return ""
    head, given, layer = uses[0]
    place = f"{shown_file(method.__code__.co_filename)}:{first + head.lineno - 1}"
    fix = f"write {ast.unparse(head.func)}({given}[:, -1]) ({place})"
    return f": each of {out[1]} time steps of {layer} is there: {fix} for the last of them"


def _uses(definition: ast.FunctionDef, owner: Any) -> Iterator[tuple[ast.Call, str, str]]:
    """Each call that is the first to be given such an output, the name of that, and the layer."""
    nodes = [*ast.walk(definition)]
    for assign in (it for it in nodes if isinstance(it, ast.Assign)):
        name, layer = _output(assign, owner)
        names = [it for it in nodes if isinstance(it, ast.Name) and it.id == name]
        later = [it for it in names if it.lineno > (assign.end_lineno or 0)]
        read = min(
            (it for it in later if isinstance(it.ctx, ast.Load)),
            key=lambda it: (it.lineno, it.col_offset),
            default=None,
        )
        stored = [it for it in later if read and it.lineno < read.lineno]
        for call in (it for it in nodes if isinstance(it, ast.Call) and not stored):
            is_layers = ast.unparse(call.func).startswith("self.")
            if is_layers and [*call.args] == [read] and not call.keywords:
                yield call, name, layer


def _output(assign: ast.Assign, owner: Any) -> tuple[str, str]:
    """`out` and `self.rnn` of `out, _ = self.rnn(x)` and of `out = self.rnn(x)[0]`; or empty."""
    target, value = assign.targets[0], assign.value
    if isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    elif isinstance(value, ast.Subscript) and ast.unparse(value.slice) == "0":
        value = value.value
    else:
        return "", ""
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
        return "", ""
    written = ast.unparse(value.func)
    layer = attribute_of(owner, written.removeprefix("self."))
    is_one = type(layer).__module__.startswith("torch.nn.") and type(layer).__name__ in _RECURRENT
    is_one = is_one and written.startswith("self.") and getattr(layer, "batch_first", False) is True
    return (target.id, written) if is_one else ("", "")
