"""What the user allows the preflight to let pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["GoOrNot", "Policy"]

GoOrNot = Literal["go", "no-go"]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the user allows.

    Attributes:
        on_degraded: Whether a slow but working job may start.
        on_unknown: Whether it may start where a check could not tell.
        on_broken: Whether it may start where a part of the preflight itself broke.
        on_unchecked: Whether it may start, as degraded, where nothing at all could be checked.
    """

    on_degraded: GoOrNot = "go"
    on_unknown: GoOrNot = "go"
    on_broken: GoOrNot = "go"
    on_unchecked: GoOrNot = "go"
