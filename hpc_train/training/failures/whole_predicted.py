"""Lightning's own predict_step, which gives a model's forward the whole batch, with its labels."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Mapping
from typing import Any

from hpc_train.training.failures.frame_text import is_users, shown_class
from hpc_train.training.failures.placed_fix import PlacedFix

_STEP = "predict_step"
_OF_PARTS = re.compile(r"\b(?:list|tuple|dict)\b")


def whole_predicted(error: BaseException) -> PlacedFix:
    """Of what forward cannot do with a list, a tuple or a dict.

    Returns:
        The place is that of the model's class.
    """
    is_of_kind = isinstance(error, TypeError | AttributeError)
    if not is_of_kind or not _OF_PARTS.search(str(error)):
        return PlacedFix()
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name != _STEP or is_users(frame.f_code.co_filename):
            continue
        model, batch = frame.f_locals.get("self"), frame.f_locals.get("batch")
        taken = _taken(batch)
        if taken and hasattr(type(model), "training_step"):
            return _told(type(model), batch, taken)
    return PlacedFix()


def _taken(batch: Any) -> str:
    """What a step of one's own does first; empty where the batch is one value."""
    if isinstance(batch, Mapping):
        keys = [it for it in batch if type(it) is str]
        return f'return self(batch["{keys[0]}"])' if keys else ""
    if not isinstance(batch, list | tuple) or not batch:
        return ""
    names = {1: "(x,)", 2: "x, y"}.get(len(batch), "x, *_")
    return f"{names} = batch; return self(x)"


def _told(kind: type, batch: Any, taken: str) -> PlacedFix:
    named = shown_class(kind)
    whole = f"a {'dict' if isinstance(batch, Mapping) else type(batch).__name__} of {len(batch)}"
    said = f"{named} has no {_STEP}, and Lightning's gives forward the whole batch, {whole}"
    fix = f"{said}: write def {_STEP}(self, batch, batch_idx): {taken}"
    try:
        return PlacedFix(f"{inspect.getfile(kind)}:{inspect.getsourcelines(kind)[1]}", fix)
    except (OSError, TypeError):  # made in a notebook
        return PlacedFix(fix=fix)
