"""Mappings with numbers as keys, among the arguments of a class: JSON has texts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PAIRS = "_pairs_"  # {"_pairs_": [[0, 1.0], [1, 20.0]]}


def as_json(value: Any) -> Any:
    """The same values, in which such a mapping is written as pairs."""
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value):
            return {name: as_json(item) for name, item in value.items()}
        return {PAIRS: [[name, as_json(item)] for name, item in value.items()]}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value


def pairs_in(value: Mapping[str, Any]) -> Mapping[Any, Any]:
    """A mapping as it was before `as_json`; what is below it stays as it is."""
    return dict(value[PAIRS]) if set(value) == {PAIRS} else value
