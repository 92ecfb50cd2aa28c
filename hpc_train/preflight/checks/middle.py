"""The middle of some values, without `statistics`, whose import is a fifth of a probe's start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

V = TypeVar("V", str, int, float)


def median_low(values: list[float]) -> float:
    """Return the middle value, the smaller one of two; raises IndexError for an empty list."""
    return sorted(values)[(len(values) - 1) // 2]


def median_high(values: list[float]) -> float:
    """Return the middle value, the larger one of two; raises IndexError for an empty list."""
    return sorted(values)[len(values) // 2]


def most_common(values: Iterable[V]) -> V | None:
    """Return the most frequent value, None for no values.

    Ties go to the larger one, so that the answer does not depend on the nodes' order, and the odd
    one out is the one that offers less.
    """
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], value)) if counts else None
