"""Medians without the `statistics` module, whose import is a fifth of a probe's start."""

from __future__ import annotations

__all__ = ["median_high", "median_low"]


def median_low(values: list[float]) -> float:
    """Return the middle value, the smaller one of two; raises IndexError for an empty list."""
    return sorted(values)[(len(values) - 1) // 2]


def median_high(values: list[float]) -> float:
    """Return the middle value, the larger one of two; raises IndexError for an empty list."""
    return sorted(values)[len(values) // 2]
