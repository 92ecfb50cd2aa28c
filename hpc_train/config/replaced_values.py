"""What goes with a value in whose place another is put: a class's arguments, classes of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.config.origins import Origins
from hpc_train.config.specs import CLASS_PATH, TARGET

_ADDED_TO = "trainer.callbacks"
_OF_CLASSES = ("trainer.callbacks", "loggers")


class ReplacedLists:
    """The classes of the lists that files have put others in the place of.

    A list is no mapping: a file's own replaces that of what it builds on, and who has added one
    callback to a file has none of the others.
    """

    def __init__(self) -> None:
        self._classes: dict[str, dict[str, str]] = {}  # by key: the place of each class
        self._last: list[Any] = []  # the callbacks that were replaced at last

    def add(self, key: str, old: object, new: object, origins: Origins) -> None:
        """Note that `new` is about to take the place of `old`; an empty list is meant."""
        if key not in _OF_CLASSES or not isinstance(old, list):
            return
        if not new:
            self._classes.pop(key, None)
            return
        if key == _ADDED_TO:
            self._last = old
        place = origins.of(key)
        self._classes.setdefault(key, {}).update(dict.fromkeys(_names(old), place))

    def notes(self, values: Mapping[str, Any], origins: Origins) -> Iterator[str]:
        """A line for each list that lacks classes of one that a file has replaced."""
        for key, places in self._classes.items():
            section, _, name = key.rpartition(".")
            now = (values.get(section) or {} if section else values).get(name)
            gone = [it for it in places if it not in _names(now)]
            if now and key == _ADDED_TO and origins.is_typed(key):
                yield from self._typed(now, places, origins)
            is_typed = ":" not in origins.of(key)  # and meant
            if not now or not gone or is_typed:
                continue
            files = ", ".join(dict.fromkeys(places[it] for it in gone))
            yield (
                f"{origins.prefix(key)}{key} replaces the list of {files}, of which"
                f" {', '.join(gone)} {'are' if len(gone) > 1 else 'is'} gone: write"
                f" {'them' if len(gone) > 1 else 'it'} here as well, if that is meant to stay"
            )

    def _typed(self, now: Any, places: Mapping[str, str], origins: Origins) -> Iterator[str]:
        """Of callbacks that were typed: those of the files that are gone, and how they stay."""
        from hpc_train.config.yaml_slips.list_elements import typed_list  # where there are any

        typed = now if isinstance(now, list) else [now]
        gone = [it for it in self._last if not {*_names([it])} <= {*_names(typed)}]
        if names := _names(gone):
            files = ", ".join(dict.fromkeys(places[it] for it in names))
            yield (
                f"{origins.prefix(_ADDED_TO)}{_ADDED_TO} replaces the list of {files}, of which"
                f" {', '.join(names)} {'are' if len(names) > 1 else 'is'} gone: to add to it, write"
                f" {typed_list(_ADDED_TO, [*gone, *typed])}"
            )


def _names(elements: object) -> list[str]:
    """The names of the classes, without their modules."""
    each = elements if isinstance(elements, list) else [elements]
    named = [(it.get(CLASS_PATH) or it.get(TARGET)) if isinstance(it, dict) else it for it in each]
    return [it.rpartition(".")[2] for it in named if isinstance(it, str)]


def drop_arguments_of_another_class(
    into: dict[str, Any], values: Mapping[str, Any], prefix: str, origins: Origins
) -> dict[str, Any]:
    """Another class_path begins with its own arguments, as Lightning's CLI has it.

    Returns:
        The keys that were dropped, and their values.
    """
    dropped: dict[str, Any] = {}
    for name in ("class_path", "_target_"):
        if name in values and name in into and values[name] != into[name]:
            for stale in [key for key in into if key != name]:
                value = into.pop(stale)
                keys = value if stale == "init_args" and isinstance(value, Mapping) else {}
                below = {f"{prefix}{stale}.{key}": it for key, it in keys.items()}
                dropped |= below or {f"{prefix}{stale}": value}
                origins.drop(f"{prefix}{stale}")
    return dropped
