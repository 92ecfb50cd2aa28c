"""A data set that gives no samples: its class has no `__getitem__`, or under another name.

torch raises it in its own Dataset, so that no frame names the class.
"""

from __future__ import annotations

import inspect
import traceback
from typing import Any

from hpc_train.config.fit.sampleless_sets import GETS, meant_as_getitem
from hpc_train.training.failures.frame_text import shown_class, shown_file
from hpc_train.training.failures.placed_fix import PlacedFix

# torch/utils/data/dataset.py, also as the text of a data worker's error.
_LACKS = f"Subclasses of Dataset should implement {GETS}"
_WRITE = f"write def {GETS}(self, index) in it"
_MOST = 8  # sets in each other


def sampleless_set(error: BaseException) -> PlacedFix:
    """Which class it is, and what to write.

    Returns:
        The place is that of the method that is meant, or the class.
    """
    if not isinstance(error, NotImplementedError) or _LACKS not in str(error):
        return PlacedFix()
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        owner = frame.f_locals.get("self")
        held = getattr(owner, "__dict__", {})
        for value in (owner, held.get("dataset"), held.get("_dataset")):
            kind = _lacking(value)
            if kind is not None:
                return _told(kind)
    return PlacedFix()


def _lacking(value: Any) -> type | None:
    """The class of the user's set, below torch's Subset and the like, that has no `__getitem__`."""
    for _ in range(_MOST):
        kind = type(value)
        bases = [it for it in kind.__mro__ if it.__module__.partition(".")[0] != "torch"]
        if bases[0] is kind:
            is_set = any(it.__name__.endswith("Dataset") for it in kind.__mro__)
            return kind if is_set and not any(GETS in vars(it) for it in bases) else None
        value = getattr(value, "__dict__", {}).get("dataset")
    return None


def _told(kind: type) -> PlacedFix:
    named = shown_class(kind)
    try:
        file, line = inspect.getfile(kind), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):  # made in a notebook or by a library
        return PlacedFix(fix=f"{named} has no {GETS}: {_WRITE}")
    has = f"{named} ({shown_file(file)}:{line}) has no {GETS}"
    methods = {it: code for it, value in vars(kind).items() if (code := _code(value))}
    if meant := meant_as_getitem(methods):
        line = methods[meant].co_firstlineno
        return PlacedFix(f"{file}:{line}", f"{has}: rename {meant} (line {line}) to {GETS}")
    return PlacedFix(f"{file}:{line}", f"{has}: {_WRITE}")


def _code(value: object) -> Any:
    return getattr(value, "__code__", None)
