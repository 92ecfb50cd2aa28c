"""What the reason of a waiting job means, and the lines on what is to be done before it begins.

Both are one text: the meaning, and below it the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

_SHORT = "its folder was moved: `hpc-train status` says more"


def with_lines(meaning: str, lines: Sequence[str]) -> str:
    """The meaning with lines below it, as `meaning_of` and `lines_below` take them apart."""
    return "\n".join((meaning, *lines))


def meaning_of(text: str) -> str:
    """What the reason means, in one line."""
    return text.partition("\n")[0]


def lines_below(text: str) -> list[str]:
    """What is to be done, a line each as in a run's history."""
    return text.split("\n")[1:]


def in_short(text: str) -> str:
    """Both in a part of a line."""
    return "; ".join(filter(None, (meaning_of(text), _SHORT if lines_below(text) else "")))
