"""Refusals of one config that are told together.

What is refused is left out of the values, and the rest is looked at again. Only what somebody wrote
is told then: what is missed for want of a value that was left out is no mistake of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from hpc_train.config.keys import FIELDS
from hpc_train.errors import ConfigError

T = TypeVar("T")
_MOST = 20
_PLACE = re.compile(r"(.+?):(\d+):")
# In the place of a key that there has to be.
_PLACEHOLDERS: Mapping[str, Any] = {
    "name": "name",
    "global_batch_size": 1,
    "model": {"class_path": "package.Model"},
    "data": {"class_path": "package.Data"},
}
# Where one of these is refused, the classes that the job would have are not known.
_DECIDES_CLASSES = re.compile(r"\b(?:env|container|script|defaults|base|cluster_profile)\b")


def gather(
    look: Callable[[dict[str, Any]], T], values: dict[str, Any], below: str = ""
) -> tuple[T | None, list[ConfigError]]:
    """What `look` returns of the values without those that it refuses, and its refusals.

    Args:
        look: Raises ConfigError.
        below: The key of `values`.

    Returns:
        None in the first place where what is refused cannot be left out.
    """
    refused: list[ConfigError] = []
    prefix = f"{below}." if below else ""
    while len(refused) < _MOST:
        try:
            return look(values), refused
        except ConfigError as error:
            keys = [it.removeprefix(prefix) for it in error.keys if it.startswith(prefix)]
            written = [it for it in keys if _has(values, it)]
            fill = {} if below else {it: _PLACEHOLDERS[it] for it in keys if it in _PLACEHOLDERS}
            if not refused or written or (fill and all(map(_is_of_a_field, refused))):
                refused.append(error)
            if not written and not fill:
                return None, refused
            for key in written:
                values = _without(values, key)
            values = {**values, **fill}
    return None, refused


def tell_together(refused: Iterable[ConfigError]) -> None:
    """Raise the first of them, which has the others with it, as they stand in their files.

    Nothing where there are none.
    """
    by_message = {it.message: it for one in refused for it in (one, *one.others)}
    if not by_message:
        return
    files = list(dict.fromkeys(_place(it)[0] for it in by_message))
    first, *others = [
        by_message[it]
        for it in sorted(by_message, key=lambda it: (files.index(_place(it)[0]), _place(it)[1]))
    ]
    for it in others:  # of a list's elements, the first has the rest with it
        it.others = ()
    first.others = tuple(others)
    raise first


def _place(message: str) -> tuple[str, int]:
    """The file and the line that a message begins with."""
    found = _PLACE.match(message)
    return (found[1], int(found[2])) if found else ("", 0)


def tells_the_classes(refused: Iterable[ConfigError]) -> bool:
    """Whether the classes can be looked for by what is left of a config."""
    texts = [f"{' '.join(it.keys)} {it.hint}" for it in refused]
    return not any(_DECIDES_CLASSES.search(it) for it in texts)


def is_placeholder(key: str, value: object) -> bool:
    """Whether a class stands in the place of one that was refused, or is missing."""
    return value == _PLACEHOLDERS.get(key)


def is_within(key: str, refused: Iterable[ConfigError]) -> bool:
    """Whether a key is one of those that are refused, or below one."""
    return any(key == it or key.startswith(f"{it}.") for error in refused for it in error.keys)


def _is_of_a_field(error: ConfigError) -> bool:
    """Whether it is about a key that there is, and none that may be meant for a missing one.

    A script that is misspelt stands in the place of all that a config has to have.
    """
    known = (it.partition(".")[0] in FIELDS for it in error.keys)
    return all(known) and not {"script", "script.path"} & {*error.keys}


def _has(values: Any, key: str) -> bool:
    return _without(values, key) is not values


def _without(values: Any, key: str) -> Any:
    """The values without a dotted key, or without the list that it is in; themselves without it."""
    if not isinstance(values, Mapping):
        return values
    if key in values:
        return {name: value for name, value in values.items() if name != key}
    for name, value in values.items():
        if not isinstance(name, str) or not key.startswith(f"{name}."):
            continue
        if isinstance(value, list):
            return {other: it for other, it in values.items() if other != name}
        rest = _without(value, key[len(name) + 1 :])
        if rest is not value:
            return {**values, name: rest}
    return values
