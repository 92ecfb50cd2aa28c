"""Whether two values of configs mean the same, however each is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from hpc_train.config.specs import INIT_ARGS, TARGET, is_object, read_tree
from hpc_train.errors import HpcTrainError
from hpc_train.plan.hostlist import expand
from hpc_train.plan.units import memory_mib, time_s

_READ: Mapping[str, Callable[[str], object]] = {
    "slurm.time": time_s,
    **dict.fromkeys(("slurm.mem", "slurm.mem_per_gpu", "slurm.mem_per_cpu"), memory_mib),
    **dict.fromkeys(("slurm.nodelist", "slurm.exclude"), lambda text: sorted(expand(text))),
}


def is_same_value(key: str, before: object, after: object) -> bool:
    """Whether a key has the same in both: a time, a size, some hosts, classes in either form."""
    # Other sections are compared by what is in them: an empty one takes the place of its keys.
    is_empty = key.endswith(f".{INIT_ARGS}") and before in (None, {}) and after in (None, {})
    if before == after or is_empty:
        return True
    if isinstance(before, str) and isinstance(after, str) and key in _READ:
        with suppress(ValueError, HpcTrainError):
            return _READ[key](before) == _READ[key](after)
        return False
    return isinstance(before, (list, dict)) and in_one_form(before, key) == in_one_form(after, key)


def in_one_form(value: Any, key: str) -> Any:
    """The same, with each class as class_path and init_args; as it is where that does not read."""
    try:
        return read_tree(value, key)
    except HpcTrainError:
        return value


def sections_alike(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two configs as mappings, with a class that only one names by `_target_` in one form in both.

    Keys of other classes stay as they are written, and as they are typed.
    """
    first, second = dict(before), dict(after)
    for key in ("model", "data"):
        pair = first.get(key), second.get(key)
        if all(map(is_object, pair)) and (TARGET in first[key]) != (TARGET in second[key]):
            first[key], second[key] = (in_one_form(it, key) for it in pair)
    return first, second
