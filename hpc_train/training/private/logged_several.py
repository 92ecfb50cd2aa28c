"""What `self.log` was given that has several elements, which Lightning refuses at an epoch's end.

Read where an error is explained: imports nothing of Lightning, and computes nothing.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass(frozen=True)
class LoggedSeveral:
    """One name that was logged.

    Attributes:
        name: As `self.log` was given it.
        hook: The method of the module that has logged it.
        attribute: Of the module, as `acc` or `metrics.MulticlassAccuracy`; empty of a tensor.
        metric: What is there.
        shape: Of its value.
        module: The LightningModule.
    """

    name: str
    hook: str
    attribute: str
    metric: Any
    shape: tuple[int, ...]
    module: Any


def logged_several(error: BaseException) -> LoggedSeveral | None:
    """What has failed, where the frames of the error tell it."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    trainer = next(_trainers(frames), None)
    if trainer is None or trainer.lightning_module is None:
        return None
    for frame in reversed(frames):
        held, result, value = frame.f_locals, None, None
        if frame.f_code.co_name == "metrics":  # of a _ResultCollection
            result, value = held.get("result_metric"), held.get("value")
        elif frame.f_code.co_name == "log_metrics" and isinstance(held.get("metrics"), dict):
            several = ((it, of) for it, of in held["metrics"].items() if _elements(of) > 1)
            name, value = next(several, ("", None))
            result = next((it for it in _results(frames) if name in _names(it.meta)), None)
        if result is not None and value is not None and _elements(value) > 1:
            meta = result.meta
            attribute = str(getattr(meta, "metric_attribute", None) or "")
            metric = result.value if attribute else None
            shape = tuple(value.shape)
            module = trainer.lightning_module
            return LoggedSeveral(meta.name, meta.fx, attribute, metric, shape, module)
    return None


def _names(meta: Any) -> tuple[str, ...]:
    return meta.name, meta.forked_name(True), meta.forked_name(False)


def _results(frames: Sequence[FrameType]) -> Iterator[Any]:
    """What the loops hold: once a fit has failed, its Trainer names none of them as active."""
    for frame in reversed(frames):
        owner = frame.f_locals.get("self")
        if type(owner).__name__.endswith("Loop"):
            yield from (getattr(owner, "_results", None) or {}).values()


def _elements(value: Any) -> int:
    return int(value.numel()) if hasattr(value, "numel") else 1


def _trainers(frames: Sequence[FrameType]) -> Iterator[Any]:
    for frame in frames:
        owner = frame.f_locals.get("self")
        if any(
            it.__name__ == "Trainer"
            and it.__module__.startswith(("pytorch_lightning.", "lightning."))
            for it in type(owner).__mro__
        ):
            yield owner
