"""Arguments that model and data both save for the loggers, with two values: which they are."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from typing import Any

from hpc_train.config.fit.clashing_hparams import NOT_LOGGED

_CLASH = re.compile(
    r"Error while merging hparams: the keys \[(?P<names>[^\]]{1,300})\] are present"
)
_MOST = 3
_LONGEST = 40  # characters of a value


def merged_hparams(error: BaseException) -> str:
    """Both values of each, and what to write; empty where the error is of something else."""
    found = _CLASH.search(str(error)) if isinstance(error, RuntimeError) else None
    if found is None:
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    model, data = (
        next(filter(None, (_saved(frame.f_locals.get(name)) for frame in frames)), {})
        for name in ("model", "datamodule")
    )
    told = [
        f"{name} is {_shown(model[name])} in the model and {_shown(data[name])} in the data"
        for name in re.findall(r"'(\w+)'", found["names"])[:_MOST]
        if name in model and name in data
    ]
    if not told:
        return ""
    return f"{', '.join(told)}: give both the same value, or write {NOT_LOGGED} in one of them"


def _saved(owner: Any) -> Mapping[str, Any]:
    saved = getattr(owner, "hparams_initial", None)
    return saved if isinstance(saved, Mapping) else {}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
