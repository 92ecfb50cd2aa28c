"""A clock for the supervisor's loops: to sleep is to be later at once."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """Stands in for the module `time`; `each` is called after every sleep."""

    def __init__(self, each: Callable[[float], None] = lambda _now: None) -> None:
        self.now = 1000.0
        self.each = each

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.each(self.now - 1000.0)
