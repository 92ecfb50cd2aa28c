"""The hidden state of a recurrent layer that is of another batch than its input.

torch's torch/nn/modules/rnn.py: `check_hidden_size`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of
from hpc_train.training.failures.layers import failed_layer, frames_of, shown_layer
from hpc_train.training.failures.unset_attributes import assigned_in

_SIZES = r"(\d+), (\d+), (\d+)"
_UNFIT = re.compile(rf"Expected hidden(?:\[[01]\])? size \({_SIZES}\), got \[{_SIZES}\]")
_LAYERS = ("LSTM", "GRU", "RNN")


def other_state(error: BaseException) -> str:
    """Whose state it is, and the call to write; empty where the error is of something else."""
    found = _UNFIT.search(str(error)) if isinstance(error, RuntimeError) else None
    line = failing_line(error) if found else None
    if found is None or line is None:
        return ""
    sizes = [int(it) for it in found.groups()]
    (layers, samples, width), has = sizes[:3], sizes[3:]
    if (layers, width) != (has[0], has[2]):
        return ""
    frames = frames_of(error)
    failed = failed_layer(frames)
    shape = shape_of(failed[1]) if failed else None
    if failed and shape and not failed[0].batch_first and shape[0] == has[1] != samples:
        said = f"{shown_layer(failed[0], frames)} takes [steps, samples, features]"
        return f"{said} and is given {[*shape]}: write batch_first=True in it"
    calls = list(_calls(*line))
    if len(calls) != 1:
        return ""
    call, state = calls[0]
    plain = f"{ast.unparse(call.func)}({ast.unparse(call.args[0])})"
    of = _told(state, line[0], has[1])
    return (
        f"{of}, and this batch has {samples}: write {plain} for {ast.unparse(call)}, which begins"
        " with zeros"
    )


def _calls(frame: FrameType, nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.Call, ast.expr]]:
    """`self.rnn(x, self.hidden)`, and what it has for a state."""
    for it in nodes:
        if not isinstance(it, ast.Call) or not it.args:
            continue
        layer: Any = value_of(it.func, frame)
        is_torchs = type(layer).__module__.startswith("torch.nn.")
        if type(layer).__name__ not in _LAYERS or not is_torchs:
            continue
        named = [word.value for word in it.keywords if word.arg == "hx"]
        yield from [(it, state) for state in (*it.args[1:2], *named)]


def _told(state: ast.expr, frame: FrameType, samples: int) -> str:
    """`self.hidden (nets.py:47) is left from a batch of 13 samples`."""
    parts = state.elts if isinstance(state, ast.Tuple) else [state]
    names = [it.attr for it in parts if isinstance(it, ast.Attribute)]
    written = ast.unparse(state)
    if len(names) < len(parts):
        return f"{written} is for {samples} samples"
    place = assigned_in(type(frame.f_locals.get("self")), names[0])
    if not place:
        return f"{written} is for {samples} samples"
    return f"{written} ({place}) is left from a batch of {samples} samples"
