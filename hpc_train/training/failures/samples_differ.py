"""Samples that become no batch, for their size or kind, or a None: their set, and its place."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpc_train.training.failures.frame_text import shown_class

_SAID = re.compile(
    r"stack expects each tensor to be equal size|each element in list of batch should be of equal"
    r"|storage that is not resizable"
)
_NONE = re.compile(
    r"object of type 'NoneType' has no len\(\)|found <class 'NoneType'>|but got NoneType"
)
_OF_NO_KIND = "default_collate: batch must contain tensors"
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


def no_batch_of_samples(error: BaseException) -> SamplesDiffer:
    """The same of a set with samples of a kind that torch makes no batch of, as images of PIL."""
    if not isinstance(error, TypeError) or _OF_NO_KIND not in str(error):
        return SamplesDiffer()
    return _users_set(error)


def _users_set(error: BaseException) -> SamplesDiffer:
    found = (place_of_samples(it) for it in sets_of(error))
    return next((it for it in found if it is not None), SamplesDiffer())


def sets_of(error: BaseException) -> Iterator[Any]:
    """The sets of the loaders that failed, below torch's Subset and the like."""
    holders = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    for holder in reversed(holders):
        kept = getattr(holder, "__dict__", {})
        yield from (below_torchs(kept[name]) for name in ("dataset", "_dataset") if name in kept)


def below_torchs(dataset: Any) -> Any:
    """The set that a Subset, or one of a Subset, has its samples of.

    Of a ConcatDataset its first one, where all are of one class.
    """
    for _ in range(_MOST):
        if type(dataset).__module__.partition(".")[0] != "torch":
            break
        held = getattr(dataset, "__dict__", {})
        dataset = held.get("dataset") or _of_one_class(held.get("datasets"))
    return dataset


def _of_one_class(datasets: Any) -> Any:
    """The first of several; None where their classes differ, so that any may be the one."""
    if not isinstance(datasets, list) or not datasets:
        return None
    kinds = {type(below_torchs(it)) for it in datasets}
    return datasets[0] if len(kinds) == 1 else None


def place_of_samples(dataset: Any) -> SamplesDiffer | None:
    """Where a data set of the user's, below torch's Subset and the like, gives its samples."""
    kind = type(below_torchs(dataset))
    for base in kind.__mro__:
        for name in _ITEMS:
            code = getattr(inspect.unwrap(base.__dict__.get(name, None)), "__code__", None)
            if code is not None and base.__module__.partition(".")[0] != "torch":
                named = shown_class(kind)
                return SamplesDiffer(f"{code.co_filename}:{code.co_firstlineno}", f"{named}.{name}")
    return None
