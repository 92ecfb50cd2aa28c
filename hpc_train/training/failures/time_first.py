"""Padded sequences whose first dimension is the time, where the labels begin with the batch.

As `pad_sequence(xs)` in a collate_fn gives them without `batch_first=True` (torch's manual,
torch.nn.utils.rnn.pad_sequence). Layers may take the time first: it is told at a failure alone
that has both sizes.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.training.failures.frame_text import is_users, shown_file
from hpc_train.training.failures.frame_values import shape_of
from hpc_train.training.failures.layers import frames_of
from hpc_train.training.failures.step_data import LOADERS, loaders_of_step
from hpc_train.training.failures.users_method import lines_of, parsed

_PADS, _FIRST = "pad_sequence", "batch_first"
_PLACE_OF_FIRST = 1  # among the arguments of pad_sequence


def time_first(error: BaseException) -> str:
    """The call to write; empty where the batch is not so, or what pads it is not known."""
    if not isinstance(error, RuntimeError | ValueError | IndexError):
        return ""
    frames = frames_of(error)
    steps = [it for it in frames if it.f_code.co_name in LOADERS]
    shapes = [*_shapes(_batch(steps[-1]))] if steps else []
    turned = next(filter(None, (_turned(one, shapes) for one in shapes)), None)
    if turned is None or not {*map(str, turned[0][:2])} <= {*re.findall(r"\d+", str(error))}:
        return ""
    for _, _, _, loader in loaders_of_step(frames):
        for one in loader if isinstance(loader, list | tuple) else [loader]:
            if made := _padded_by(getattr(one, "collate_fn", None)):
                has, wants = turned
                said = f"the batch has {[*has]} beside {[*wants]}, the time first"
                return f"{said}: write {made}"
    return ""


def _batch(frame: Any) -> Any:
    """What the step was given, behind `self`."""
    names = frame.f_code.co_varnames[1:2]
    return frame.f_locals.get(names[0]) if names else None


def _shapes(batch: Any) -> Iterator[tuple[int, ...]]:
    parts = batch.values() if isinstance(batch, Mapping) else batch
    for it in parts if isinstance(batch, Mapping | list | tuple) else ():
        shape = shape_of(it)
        if shape:
            yield shape


def _turned(
    one: tuple[int, ...], shapes: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """A shape [time, batch, ...], and another that begins with the batch."""
    if len(one) < 2 or one[0] == one[1]:
        return None
    return next(((one, it) for it in shapes if it[0] == one[1]), None)


def _padded_by(collate: Any) -> str:
    """`pad_sequence(xs, batch_first=True) (data.py:41)`, of the user's function or callable."""
    called = collate if inspect.isroutine(collate) else vars(type(collate)).get("__call__")
    function = getattr(called, "__func__", called)
    if not inspect.isfunction(function) or not is_users(function.__code__.co_filename):
        return ""
    lines, first = lines_of(function)
    definition = parsed(lines)
    calls = [
        it
        for it in (ast.walk(definition) if definition else ())
        if isinstance(it, ast.Call) and ast.unparse(it.func).rpartition(".")[2] == _PADS
    ]
    if not calls or any(_is_batch_first(it) for it in calls):
        return ""
    call = calls[0]
    given = ", ".join(ast.unparse(it) for it in (*call.args, *call.keywords))
    where = f"{shown_file(function.__code__.co_filename)}:{first + call.lineno - 1}"
    return f"{ast.unparse(call.func)}({given}, {_FIRST}=True) ({where})"


def _is_batch_first(call: ast.Call) -> bool:
    return len(call.args) > _PLACE_OF_FIRST or any(it.arg in (_FIRST, None) for it in call.keywords)
