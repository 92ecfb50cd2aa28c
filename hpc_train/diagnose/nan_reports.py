"""A training that has diverged, by its own reports: the loss or the gradient's norm is NaN in each.

One NaN among finite values is none: a loss scaler passes over such a step, and so does a program
that skips a batch. Forms: Megatron's training.py (`grad norm: nan |`), transformers' dictionaries
(`'grad_norm': nan`), and what most loops print (`loss: nan`, `loss=nan`, `loss nan`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpc_train.diagnose.rules import Evidence

_REPORT = (
    r"(?<![\w/.])(?<!val )(?<!test )(?<!best )(?P<what>(?:lm |train[_ ])?loss|grad[ _]norm)"
    r"['\"]?[:=]? {{0,3}}['\"]?{}"
)
_NAN = re.compile(_REPORT.format(r"(?i:nan)(?![\w-])"))
_FINITE = re.compile(_REPORT.format(r"-?\d"))
# Megatron did not use that step.
_SKIPPED = re.compile(r"number of skipped iterations: {1,9}[1-9]")
# A norm that is NaN tells as much as the loss where no scaler can have made it: transformers logs a
# loss that is NaN as 0.
_UNSCALED = re.compile(r"loss scale: 1\.0\b|'loss': 0\.0,")
_STEP = re.compile(r"\biteration {1,9}(\d{1,12})")
_SEEN = 2  # lines behind such a report that are read whatever they say
_MOST_SKIPPED = 20  # steps that a scaler skips while it looks for its scale
_LEAST = 3


class NanReports:
    """Takes lines; it counts the reports in a row that say NaN."""

    def __init__(self) -> None:
        self._count = 0
        self._weak = 0
        self._left = 0
        self._what = ""
        self._first: Evidence | None = None
        self._last: Evidence | None = None

    @property
    def is_open(self) -> bool:
        """Whether the next line may be a report that ends the row."""
        return self._left > 0

    def take(self, line: str, where: Evidence) -> None:
        """Take a line of any kind."""
        self._left = max(0, self._left - 1)
        if _SKIPPED.search(line):
            return
        if found := _NAN.search(line):
            self._add(found["what"], line, where)
        elif self._count and _FINITE.search(line):
            self._count = self._weak = 0

    def _add(self, what: str, line: str, where: Evidence) -> None:
        last, self._last, self._left = self._last, where, _SEEN
        if last and (last.file, last.line) == (where.file, where.line):
            return
        # Each line between the two was seen.
        if not (last and last.file == where.file and where.line - last.line <= _SEEN + 1):
            self._count = self._weak = 0
        if not self._count:
            self._first = where
            step = _STEP.search(line)
            at = f" from iteration {step[1]} on at the latest" if step else ""
            self._what = f"the {what.replace('_', ' ')} is NaN{at}"
        self._count += 1
        self._weak += "norm" in what and not _UNSCALED.search(line)

    def at_end(self) -> Iterator[tuple[str, Evidence]]:
        """Yield (what the reports say, the first of them) in the form of the rules."""
        least = _MOST_SKIPPED if self._weak else _LEAST
        if self._first and self._count >= least:
            yield f"diverged: {self._what}, in {self._count} reports in a row or more", self._first
