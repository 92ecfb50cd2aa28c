"""A data set whose class has no `__len__`: which class it is, where it is, and what to write.

torch, Lightning and hpc-train ask for the length, so that no frame names the class.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hpc_train.config.fit.lengthless_sets import LEN, how_to_write, indexed_by_number, returned
from hpc_train.config.fit.sampleless_sets import GETS
from hpc_train.training.failures.frame_text import shown_class, shown_file
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.users_method import class_text, lines_of, parsed

_NO_LENGTH = re.compile(r"object of type '(?P<kind>\w+)' has no len\(\)")
_NO_NUMBER = re.compile(r"'(?P<kind>\w+)' object cannot be interpreted as an integer")
_HELD = ("dataset", "_dataset", "data_source")
_MOST = 8  # sets in each other


def lengthless_set(error: BaseException) -> PlacedFix:
    """The user's set of a loader, or of a line of the user's own, that was asked for its length.

    Returns:
        The place is that of the class.
    """
    if isinstance(error, TypeError) and (other := _NO_NUMBER.search(str(error))):
        return _of_number(error, other["kind"])
    found = _NO_LENGTH.search(str(error)) if isinstance(error, TypeError) else None
    if not found or found["kind"] == "NoneType":  # of a sample `samples_differ` tells it
        return PlacedFix()
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        for value in _values(frame):
            if type(value).__name__ == found["kind"] and _is_set(type(value)):
                return _told(value)
    return PlacedFix()


def _of_number(error: BaseException, kind: str) -> PlacedFix:
    """Of a `__len__` of the user's that gives something else than a number."""
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        for value in _values(frame):
            length: Any = getattr(type(value), LEN, None)
            if not inspect.isfunction(length) or not _is_set(type(value)):
                continue
            node = parsed(lines_of(inspect.unwrap(length))[0])
            gives = type(length(value)).__name__
            if node is None or gives != kind:
                continue
            code = inspect.unwrap(length).__code__
            place = f"{shown_file(code.co_filename)}:{code.co_firstlineno}"
            said = f"{shown_class(type(value))}.{LEN} ({place}) gives a {gives}"
            fix = "have it return a whole number, as of int(...) or //"
            if kind == "NoneType":
                said, fix = said.replace("gives a NoneType", "returns nothing"), returned(node)
            return PlacedFix(f"{code.co_filename}:{code.co_firstlineno}", f"{said}: {fix}")
    return PlacedFix()


def _values(frame: FrameType) -> Iterator[Any]:
    """What a frame holds, and the sets below torch's Subset, samplers and loaders."""
    for value in list(frame.f_locals.values()):
        for _ in range(_MOST):
            yield value
            held = getattr(value, "__dict__", {})
            value = next((held[it] for it in _HELD if held.get(it) is not None), None)
    yield from list(getattr(frame.f_locals.get("self"), "__dict__", {}).values())


def _is_set(kind: type) -> bool:
    """Whether a loader takes its samples by their number."""
    names = {it.__name__ for it in kind.__mro__}
    is_torchs = kind.__module__.partition(".")[0] == "torch"
    return hasattr(kind, GETS) and not is_torchs and "IterableDataset" not in names


def _told(dataset: Any) -> PlacedFix:
    kind = type(dataset)
    lines, line = lines_of(kind)
    if not lines:  # made in a notebook or by a library
        return PlacedFix(fix=f"{shown_class(kind)} has no {LEN}: write it in the class")
    file, definition = inspect.getfile(kind), class_text(lines, line)
    place = f"{shown_class(kind)} ({shown_file(file)}:{line})"
    fix = how_to_write(definition, _kept(dataset)) if definition else "write it in the class"
    return PlacedFix(f"{file}:{line}", f"{place} has no {LEN}: {fix}")


def _kept(dataset: Any) -> str:
    """Of what its `__getitem__` indexes with its number the first that has a length."""
    getter = parsed(lines_of(inspect.unwrap(getattr(type(dataset), GETS)))[0])
    held = getattr(dataset, "__dict__", {})
    sized = (it for it in indexed_by_number(getter) if hasattr(held.get(it), LEN)) if getter else ()
    return next(iter(sized), "")
