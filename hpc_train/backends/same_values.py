"""Whether two values of configs mean the same, however each is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET, is_object, read_tree
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


def in_parts(key: str, before: object, after: object) -> Iterator[tuple[str, object, object]]:
    """What differs of a value: of lists of equal length each element that does, by its path.

    `trainer.callbacks.0.init_args.patience`, 3 and 2. None stands for what only one has.
    """
    if before == after:
        return
    old, new = _by_name(before), _by_name(after)
    is_same_kind = type(before) is type(after) and bool(old) and bool(new)
    is_list = isinstance(before, list)
    if is_same_kind and (old.keys() == new.keys() if is_list else _alike(old, new)):
        for name in {**old, **new}:
            yield from in_parts(f"{key}.{name}", old.get(name), new.get(name))
    else:
        yield key, before, after


def _by_name(value: object) -> Mapping[str, object]:
    if isinstance(value, list):
        return {str(number): it for number, it in enumerate(value)}
    return {str(name): it for name, it in value.items()} if isinstance(value, Mapping) else {}


def _alike(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Whether both are of one class, where they are of any."""
    return all(before.get(it) == after.get(it) for it in (CLASS_PATH, TARGET))


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
