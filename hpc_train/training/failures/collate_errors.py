"""A `collate_fn` that a loader cannot call with its one list, or that returned no batch."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Iterator
from typing import Any

from hpc_train.config.fit.wrong_collates import of_one_list, with_batch
from hpc_train.config.python_text.method_signatures import gives_value
from hpc_train.training.failures.frame_text import is_users, shown_file
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.users_method import lines_of, parsed

# Also as the text of a data worker's error.
_CALLED = re.compile(r"(?P<name>\w+)\(\) missing \d+ required positional arguments?: ")
_HELD = ("collate_fn", "_collate_fn")


def wrong_collate(error: BaseException) -> PlacedFix:
    """Of a loader that gave its function fewer values than it needs.

    Returns:
        The place is that of its def.
    """
    found = _CALLED.search(str(error)) if isinstance(error, TypeError) else None
    for function in _held(error) if found else ():
        node = parsed(lines_of(function)[0])
        if found is None or node is None or node.name != found["name"]:
            continue
        if hint := of_one_list(node, is_method=inspect.ismethod(function)):
            said = f"{_placed(function)} is given one list of samples"
            return PlacedFix(_where(function), f"{said}: {hint}")
    return PlacedFix()


def gives_no_batch(loader: Any) -> PlacedFix:
    """Of a loader whose function surely returns nothing."""
    function = getattr(loader, "collate_fn", None)
    node = parsed(lines_of(function)[0]) if inspect.isroutine(function) else None
    if node is None or gives_value(node) is not False or not is_users(_where(function)):
        return PlacedFix()
    return PlacedFix(_where(function), f"{_placed(function)} returns nothing: {with_batch(node)}")


def _held(error: BaseException) -> Iterator[Any]:
    """The functions of the loaders, and of what torch keeps them in, that the frames are of."""
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        for owner in list(frame.f_locals.values()):
            kept = getattr(owner, "__dict__", {})
            for function in (kept.get(it) for it in _HELD):
                if inspect.isroutine(function) and is_users(_where(function)):
                    yield function


def _where(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "<"


def _placed(function: Any) -> str:
    file, _, line = _where(function).rpartition(":")
    name = f"{function.__module__}.{function.__qualname__}".removeprefix("__main__.")
    return f"{name} ({shown_file(file)}:{line})"
