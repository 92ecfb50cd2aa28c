"""A data set whose length says more samples than it has."""

from __future__ import annotations

import inspect
import re
import traceback
from types import FrameType

from hpc_train.training.frame_text import shown_class

_SIZE = re.compile(
    r"index (?P<index>\d+) is out of bounds for (?:dimension|axis) 0 with size (?P<size>\d+)"
)
_OF_LIST = "list index out of range"
_GETS = "__getitem__"


def past_the_end(error: IndexError) -> str:
    """Its `__len__`, the sample that was asked for, and how many there are; or empty.

    Only where the number of the sample itself is what was indexed with: the numbers of others,
    as of a row that it has, follow from no length.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        names, holder = frame.f_code.co_varnames, frame.f_locals.get("self")
        if frame.f_code.co_name != _GETS or len(names) < 2 or holder is None:
            continue
        kind, index = type(holder), frame.f_locals.get(names[1])
        if kind.__module__.partition(".")[0] == "torch" or type(index) is not int:
            continue
        size = _size(error, frame, index)
        if not inspect.isfunction(getattr(kind, "__len__", None)) or size is None:
            return ""
        says = len(holder)
        if not size <= index < says:
            return ""
        named = shown_class(kind)
        return (
            f"{named}.__len__ says {says}, and what its {_GETS} takes sample {index} of has {size}"
        )
    return ""


def _size(error: IndexError, frame: FrameType, index: int) -> int | None:
    """Of what was indexed: of lists, whose error does not say it, that of the only short one."""
    if found := _SIZE.search(str(error)):
        return int(found["size"]) if int(found["index"]) == index else None
    if str(error) != _OF_LIST:
        return None
    held = vars(frame.f_locals["self"]) if hasattr(frame.f_locals["self"], "__dict__") else {}
    used = [held[it] for it in frame.f_code.co_names if isinstance(held.get(it), list)]
    short = {len(it) for it in used if len(it) <= index}
    return short.pop() if len(short) == 1 else None
