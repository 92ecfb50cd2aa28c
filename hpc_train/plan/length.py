"""How long a training is by its Trainer's arguments, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpc_train.plan.cut_epochs import CUTS

_ENDS = ("max_epochs", "max_steps", "max_time")


def length_text(trainer: Mapping[str, Any]) -> str:
    """`max_epochs 2, each of 10 batches (trainer.limit_train_batches)`."""
    if trial := trial_text(trainer):
        return trial
    text = _until(trainer)
    for name in CUTS:
        if share := _share(trainer.get(name)):
            text += f", each epoch of {share} (trainer.{name})"
    return text


def _until(trainer: Mapping[str, Any]) -> str:
    """The limits that are any; -1 is Lightning's word for none (`pl.Trainer`, max_epochs)."""
    ends = [f"{it} {trainer[it]}" for it in _ENDS if trainer.get(it) not in (None, -1)]
    if ends:
        return " or ".join(ends) + (", whichever comes first" if ends[1:] else "")
    if trainer.get("max_epochs") == -1:
        return "it is cancelled, or a callback ends it (max_epochs -1: no end)"
    return "the end of Lightning's default, 1000 epochs"


def trial_text(trainer: Mapping[str, Any]) -> str:
    """`a trial of 1 batch (trainer.fast_dev_run)`; empty where it is a training."""
    number = int(trainer.get("fast_dev_run") or 0)
    return f"a trial of {_batches(number)} (trainer.fast_dev_run)" if number else ""


def _share(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value:
        return ""
    if isinstance(value, int):
        return _batches(value)
    return f"{value:g} of its batches" if value < 1 else ""


def _batches(number: int) -> str:
    return f"{number} batch{'es' if number != 1 else ''}"
