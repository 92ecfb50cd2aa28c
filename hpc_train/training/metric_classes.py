"""A metric of torchmetrics that was made for another number of classes than it is given."""

from __future__ import annotations

import traceback
from types import FrameType
from typing import Any

_COUNTS = {"num_classes": "classes", "num_labels": "labels"}  # arguments of torchmetrics' own


def of_metric(error: BaseException) -> str:
    """What to write in its place; empty where both numbers agree, or it is of something else."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not isinstance(error, ValueError | RuntimeError) or not frames:
        return ""
    last = frames[-1]
    shape: tuple[int, ...] = getattr(last.f_locals.get("preds"), "shape", ())
    target: tuple[int, ...] = getattr(last.f_locals.get("target"), "shape", ())
    if not str(last.f_globals.get("__name__", "")).startswith("torchmetrics."):
        return ""
    for argument, word in _COUNTS.items():
        made = last.f_locals.get(argument)
        is_one = argument == "num_labels" or len(shape) == len(target) + 1
        if type(made) is int and len(shape) > 1 and is_one and shape[1] != made:
            said = f"{_named(frames)} was made with {argument}={made}, and is given {shape[1]}"
            return f"{said} {word}: write {argument}={shape[1]}, or give it what has {made}"
    return ""


def _named(frames: list[FrameType]) -> str:
    """`self.acc` where the user's frame has it so; else its class's name."""
    metrics = [it for frame in frames if (it := _metric_of(frame)) is not None]
    if not metrics:
        return "the metric"
    for frame in frames:
        children = getattr(frame.f_locals.get("self"), "named_children", None)  # of a module
        for name, value in children() if children else ():
            if value is metrics[0]:
                return f"self.{name}"
    return type(metrics[0]).__name__


def _metric_of(frame: FrameType) -> Any:
    owner = frame.f_locals.get("self")
    is_metric = any(it.__module__.startswith("torchmetrics") for it in type(owner).__mro__)
    return owner if is_metric else None
