"""Samples that cannot become one batch, by size or for a None: their data set, and its place."""

from __future__ import annotations

import inspect
import re
import traceback
from dataclasses import dataclass
from typing import Any

from hpc_train.training.frame_text import shown_class

_SAID = re.compile(
    r"stack expects each tensor to be equal size|each element in list of batch should be of equal"
    r"|storage that is not resizable"
)
_NONE = re.compile(
    r"object of type 'NoneType' has no len\(\)|found <class 'NoneType'>|but got NoneType"
)
_COLLATE = "/torch/utils/data/_utils/collate.py"
_ITEMS = ("__getitems__", "__getitem__", "__iter__")
_MOST = 8  # sets in each other


@dataclass(frozen=True)
class SamplesDiffer:
    """Both are empty where the error is of something else, or the set is none of the user's.

    Attributes:
        where: `file:line` of the method that gives a sample.
        of: Its class and the method.
    """

    where: str = ""
    of: str = ""


def samples_differ(error: BaseException) -> SamplesDiffer:
    """The user's data set of the loader that failed, below torch's Subset and the like."""
    if not isinstance(error, RuntimeError) or not _SAID.search(str(error)):
        return SamplesDiffer()
    return _users_set(error)


def none_in_samples(error: BaseException) -> SamplesDiffer:
    """The same of a set that gave None, as a sample or in one, which no batch can be made of."""
    said = str(error)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    files = [frame.f_code.co_filename for frame in frames]
    is_collated = _COLLATE in said or any(it.endswith(_COLLATE) for it in files)
    if not isinstance(error, TypeError) or not _NONE.search(said) or not is_collated:
        return SamplesDiffer()
    return _users_set(error)


def _users_set(error: BaseException) -> SamplesDiffer:
    holders = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    for holder in reversed(holders):
        kept = getattr(holder, "__dict__", {})
        for name in ("dataset", "_dataset"):
            if found := place_of_samples(kept.get(name)):
                return found
    return SamplesDiffer()


def place_of_samples(dataset: Any) -> SamplesDiffer | None:
    """Where a data set of the user's, below torch's Subset and the like, gives its samples."""
    for _ in range(_MOST):
        kind = type(dataset)
        if kind.__module__.partition(".")[0] != "torch":
            break
        dataset = getattr(dataset, "__dict__", {}).get("dataset")
    for base in kind.__mro__:
        for name in _ITEMS:
            code = getattr(inspect.unwrap(base.__dict__.get(name, None)), "__code__", None)
            if code is not None and base.__module__.partition(".")[0] != "torch":
                named = shown_class(kind)
                return SamplesDiffer(f"{code.co_filename}:{code.co_firstlineno}", f"{named}.{name}")
    return None
