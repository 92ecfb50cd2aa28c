"""A data set whose length says more samples than it has."""

from __future__ import annotations

import inspect
import re
import traceback
from typing import Any

from hpc_train.config.fit.lengthless_sets import LEN, indexed_by_number
from hpc_train.config.fit.sampleless_sets import GETS
from hpc_train.training.failures.frame_text import IN_WORKER, frames_in, shown_class, shown_file
from hpc_train.training.failures.samples_differ import sets_of
from hpc_train.training.failures.users_method import lines_of, parsed

_SIZE = re.compile(
    r"index (?P<index>\d+) is out of bounds for (?:dimension|axis) 0 with size (?P<size>\d+)"
)
_UNSIZED = re.compile(r"list index out of range|positional indexer is out-of-bounds")


def past_the_end(error: IndexError) -> str:
    """Its `__len__`, the sample that was asked for, and how many there are; or empty.

    Only where the number of the sample itself is what was indexed with: the numbers of others,
    as of a row that it has, follow from no length.
    """
    if IN_WORKER in str(error):
        return next(filter(None, (_of_worker(error, it) for it in sets_of(error))), "")
    for frame, _ in traceback.walk_tb(error.__traceback__):
        names, holder = frame.f_code.co_varnames, frame.f_locals.get("self")
        if frame.f_code.co_name != GETS or len(names) < 2 or holder is None:
            continue
        index = frame.f_locals.get(names[1])
        if type(holder).__module__.partition(".")[0] == "torch" or type(index) is not int:
            continue
        used = [it for it in frame.f_code.co_names if it in _held(holder)]
        return _told(holder, index, _size(str(error), _held(holder), used, index))
    return ""


def _of_worker(error: IndexError, dataset: Any) -> str:
    """Of its text, as a data worker hands it over, and of the set that the rank has itself."""
    frames, getter = frames_in(str(error)), _getter(dataset)
    code = getattr(getter, "__code__", None)
    if not frames or code is None or frames[-1][0] != code.co_filename or frames[-1][2] != GETS:
        return ""
    used, found = _indexed(dataset), _SIZE.search(str(error))
    if found:
        fit = [it for it in used if _len(_held(dataset)[it]) == int(found["size"])]
        return _told(dataset, int(found["index"]), int(found["size"])) if fit else ""
    says = len(dataset) if hasattr(type(dataset), LEN) else 0
    size = _size(str(error), _held(dataset), used, says - 1)
    return _told(dataset, says - 1, size)


def _told(holder: Any, index: int, size: int | None) -> str:
    length = getattr(type(holder), LEN, None)
    if size is None or not inspect.isfunction(length):
        return ""
    says = len(holder)
    if not size <= index < says:
        return ""
    code = inspect.unwrap(length).__code__
    where = f"{shown_class(type(holder))}.{LEN} ({shown_file(code.co_filename)}:"
    where += f"{code.co_firstlineno}) gives {says}"
    fit = [it for it in _indexed(holder) if _len(_held(holder)[it]) == size]
    if fit:
        return f"{where}, and self.{fit[0]} holds {size}: write return len(self.{fit[0]}) there"
    return f"{where}, and what its {GETS} takes sample {index} of has {size}"


def _size(said: str, held: dict[str, Any], used: list[str], index: int) -> int | None:
    """Of what was indexed: of lists, whose error does not say it, that of the only short one."""
    if found := _SIZE.search(said):
        return int(found["size"]) if int(found["index"]) == index else None
    if not _UNSIZED.search(said):
        return None
    listed = [held[it] for it in used if isinstance(held[it], list) or hasattr(held[it], "iloc")]
    short = {len(it) for it in listed if len(it) <= index}
    return short.pop() if len(short) == 1 else None


def _getter(holder: Any) -> Any:
    getter: Any = getattr(type(holder), GETS, None)
    return inspect.unwrap(getter)


def _indexed(holder: Any) -> list[str]:
    """What it keeps in self and indexes with the number of a sample."""
    getter = parsed(lines_of(_getter(holder))[0])
    return [it for it in indexed_by_number(getter) if it in _held(holder)] if getter else []


def _held(holder: Any) -> dict[str, Any]:
    return getattr(holder, "__dict__", {})


def _len(value: Any) -> int:
    is_scalar = getattr(value, "ndim", 1) == 0
    return len(value) if hasattr(type(value), LEN) and not is_scalar else -1
