"""What is told of a failed line: a place of the user's, and what to write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlacedFix:
    """Both are empty where the error is of something else, or nothing tells it.

    Attributes:
        where: `file:line` of what is to be changed; empty where several places may be meant.
        fix: What is wrong there, and what to write.
    """

    where: str = ""
    fix: str = ""
