"""A metric of torchmetrics that was made for other classes, or another shape, than it is given."""

from __future__ import annotations

import ast
import re
import sys
import traceback
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import nodes_of
from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of

# Of a task that needs a number, in both forms that torchmetrics says it in.
_LACKS = re.compile(
    r"`(?P<argument>num_classes|num_labels)` (?:must be type|is expected to be) `int`"
)
_LONGEST = 80  # characters of a call that is written again
_COUNTS = {"num_classes": "classes", "num_labels": "labels"}  # arguments of torchmetrics' own


def of_metric(error: BaseException) -> str:
    """What to write in its place; empty where both numbers agree, or it is of something else."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not isinstance(error, ValueError | RuntimeError) or not frames:
        return ""
    if lacking := _LACKS.search(str(error)):
        return _with_number(error, lacking["argument"])
    last = frames[-1]
    shape: tuple[int, ...] = getattr(last.f_locals.get("preds"), "shape", ())
    target: tuple[int, ...] = getattr(last.f_locals.get("target"), "shape", ())
    if not str(last.f_globals.get("__name__", "")).startswith("torchmetrics."):
        return ""
    if swapped := _swapped(error, last):
        return swapped
    for argument, word in _COUNTS.items():
        made = last.f_locals.get(argument)
        is_one = argument == "num_labels" or len(shape) == len(target) + 1
        if type(made) is int and len(shape) > 1 and is_one and shape[1] != made:
            said = f"{_named(frames)} was made with {argument}={made}, and is given {shape[1]}"
            return f"{said} {word}: write {argument}={shape[1]}, or give it what has {made}"
    return _of_shapes(error, frames, tuple(shape), tuple(target))


def _swapped(error: BaseException, last: FrameType) -> str:
    """Of labels in the place of the predictions: class numbers, and scores in theirs."""
    preds, target = (last.f_locals.get(it) for it in ("preds", "target"))
    has, wants = shape_of(preds), shape_of(target)
    if not has or not wants or preds is None or target is None:
        return ""
    if preds.is_floating_point() or not target.is_floating_point() or has[:1] != wants[:1]:
        return ""
    frame, nodes = failing_line(error) or (None, [])
    calls = {it: given for it in nodes if isinstance(it, ast.Call) and (given := _pair(it))}
    if frame is None or len(calls) != 1:
        return ""
    ((call, (first, second)),) = calls.items()
    dtypes = [str(it.dtype).removeprefix("torch.") for it in (preds, target)]
    said = f"it is given {dtypes[0]} {[*has]} as predictions and {dtypes[1]} {[*wants]} as labels"
    one, other = ast.unparse(second), ast.unparse(first)
    return f"{said}: write {ast.unparse(call.func)}({one}, {other})"


def _of_shapes(
    error: BaseException, frames: list[FrameType], has: tuple[int, ...], wants: tuple[int, ...]
) -> str:
    """Of a dimension of 1 too many, and of classes for a metric of two."""
    kind = type(_first_metric(frames)).__name__
    if not has or not wants or has == wants or not re.search("shape|dimension", str(error)):
        return ""
    other = kind.replace("Binary", "Multiclass")
    is_there = hasattr(sys.modules.get("torchmetrics.classification"), other)
    if is_there and other != kind and has[:1] + has[2:] == wants and has[1] > 1:
        said = f"{_named(frames)} is binary, and is given {has[1]} classes"
        return f'{said}: write task="multiclass", num_classes={has[1]}, which is {other}'
    for place, (one, other_shape) in enumerate(((has, wants), (wants, has))):
        dimension = _single(one, other_shape)
        if dimension is None and place and len(one) == len(other_shape) and one[1:2] == (1,):
            dimension = _single(one, (other_shape[0], *other_shape[2:]))
        if dimension is not None:
            written = _squeezed(error, place, one, dimension)
            named = ("the predictions", "the labels")[place]
            return f"write {written or f'.squeeze({dimension}) behind {named}'}"
    return ""


def _single(shape: tuple[int, ...], wanted: tuple[int, ...]) -> int | None:
    """The last dimension of 1 without which a shape is the wanted one."""
    places = (it for it in range(len(shape) - 1, -1, -1) if shape[it] == 1)
    return next((it for it in places if shape[:it] + shape[it + 1 :] == wanted), None)


def _squeezed(error: BaseException, place: int, shape: tuple[int, ...], dimension: int) -> str:
    """`self.acc(logits.squeeze(1), y)` of the user's line; empty where its call is not sure."""
    frame, nodes = failing_line(error) or (None, [])
    calls = {it: given for it in nodes if isinstance(it, ast.Call) and (given := _pair(it))}
    if frame is None or len(calls) != 1:
        return ""
    ((call, pair),) = calls.items()
    meant = pair[place]
    if shape_of(value_of(meant, frame)) not in (None, shape):
        return ""
    text = ast.unparse(meant)
    is_plain = isinstance(meant, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    new = f"{text if is_plain else f'({text})'}.squeeze({dimension})"
    args = [new if it is meant else ast.unparse(it) for it in call.args]
    args += [
        f"{it.arg}={new if it.value is meant else ast.unparse(it.value)}" for it in call.keywords
    ]
    return f"{ast.unparse(call.func)}({', '.join(args)})"


def _pair(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The predictions and the labels of a call; None of one that names something first."""
    named = {it.arg: it.value for it in call.keywords}
    first, second = (*call.args[:2], None, None)[:2]
    first, second = first or named.get("preds"), second or named.get("target")
    is_open = None in named or any(isinstance(it, ast.Starred) for it in call.args)
    if first is None or second is None or is_open or isinstance(first, ast.Constant):
        return None
    return first, second


def _with_number(error: ValueError | RuntimeError, argument: str) -> str:
    """The call that makes a metric without its number of classes or labels, with that number."""
    found = failing_line(error)
    calls = [it for it in found[1] if isinstance(it, ast.Call)] if found else []
    made = [it for it in calls if any(given.arg == "task" for given in it.keywords)]
    made = made or [it for it in calls if found and _is_torchmetrics(it, found[0])]
    made = [it for it in made if _given(it, argument) in ("", "None")]
    if found is None or len(made) != 1 or len(written := ast.unparse(made[0])) > _LONGEST:
        return ""
    number, of = _number(found[0], argument)
    given = f"{argument}={number}"
    if any(it.arg is None for it in made[0].keywords):  # **kwargs
        return ""
    if _given(made[0], argument):
        written = written.replace(f"{argument}=None", given)
    else:
        written = f"{written[:-1]}, {given})"
    return f"write {written}{f', {of}' if of else ''}"


def _given(call: ast.Call, argument: str) -> str:
    return next((ast.unparse(it.value) for it in call.keywords if it.arg == argument), "")


def _is_torchmetrics(call: ast.Call, frame: FrameType) -> bool:
    kind = value_of(call.func, frame)
    return str(getattr(kind, "__module__", "")).startswith("torchmetrics.")


def _number(frame: FrameType, argument: str) -> tuple[str, str]:
    """What stands for it in the frame: a number by its name, or that of the last layer."""
    word = argument.removeprefix("num_")
    for name in (argument, f"n_{word}", word, f"{word}_num", f"n{word}"):
        if type(frame.f_locals.get(name)) is int:
            return name, ""
    linear = [
        (target.attr, it.value.args[1])
        for it in nodes_of(frame)
        if isinstance(it, ast.Assign) and isinstance(it.value, ast.Call) and len(it.value.args) > 1
        if ast.unparse(it.value.func).endswith("Linear")
        for target in it.targets
        if isinstance(target, ast.Attribute)
    ]
    if len(linear) == 1 and isinstance(size := linear[0][1], ast.Constant) and size.value != 1:
        return str(size.value), f"as self.{linear[0][0]} gives"
    return "N", f"N the number of {word}"


def _named(frames: list[FrameType]) -> str:
    """`self.acc` where the user's frame has it so; else its class's name."""
    metric = _first_metric(frames)
    if metric is None:
        return "the metric"
    for frame in frames:
        children = getattr(frame.f_locals.get("self"), "named_children", None)  # of a module
        for name, value in children() if children else ():
            if value is metric:
                return f"self.{name}"
    return type(metric).__name__


def _first_metric(frames: list[FrameType]) -> Any:
    return next((it for frame in frames if (it := _metric_of(frame)) is not None), None)


def _metric_of(frame: FrameType) -> Any:
    owner = frame.f_locals.get("self")
    is_metric = any(it.__module__.startswith("torchmetrics") for it in type(owner).__mro__)
    return owner if is_metric else None
