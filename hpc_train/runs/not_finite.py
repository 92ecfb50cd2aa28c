"""Where metrics.csv has the first number that is none: what a training that diverges logs first."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class NotFinite:
    """A metric, its step as it was logged, and what it was: nan, inf or -inf."""

    name: str
    step: int
    value: float

    @property
    def text(self) -> str:
        """`train_loss was nan at step 2`."""
        return f"{self.name} was {self.value} at step {self.step}"


def tells_divergence(name: str, value: Any) -> bool:
    """Whether a logged value is NaN, or a loss infinite: a best value so far may begin as inf."""
    if not isinstance(value, float):
        return False
    return math.isnan(value) or (math.isinf(value) and "loss" in name)


def first_not_finite(metrics_csv: Path) -> NotFinite | None:
    """The first in the file; None where there is none, or no file that can be read."""
    try:
        with metrics_csv.open(encoding="utf-8", newline="") as stream:
            return next(_in_rows(csv.DictReader(stream)), None)
    except (OSError, ValueError, KeyError, csv.Error):
        return None


def _in_rows(rows: Iterable[dict[str, str]]) -> Iterator[NotFinite]:
    for row in rows:
        for name, text in row.items():
            if text in ("nan", "inf", "-inf") and tells_divergence(name, float(text)):
                yield NotFinite(name, int(row["step"]), float(text))
