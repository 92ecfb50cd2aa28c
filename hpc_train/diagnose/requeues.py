"""A job that submitit requeued, and that started again in the same log.

Sources: submitit's core/job_environment.py (_requeue) and core/submission.py (process_job).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence, Failure

_REQUEUED = re.compile(r"\bRequeued job (\d{1,12}(?:_\d{1,9})?)")
_STARTED = re.compile(r"\bStarting with JobEnvironment\(job_id=(\d{1,12}(?:_\d{1,9})?)\b")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_ENDS = {"preempted": "was preempted and", "time_limit": "reached its time limit and was"}
_FIX = "nothing for that: what the job wrote after that start tells whether it went on as it should"


class Requeues:
    """Takes lines; keeps the last start of the job that was requeued."""

    def __init__(self) -> None:
        self._job = ""
        self._again: Evidence | None = None

    def take(self, line: str, where: Evidence) -> None:
        """Take a line of any kind."""
        if found := _REQUEUED.search(line):
            self._job = found[1]
        elif self._job and (found := _STARTED.search(line)) and found[1] == self._job:
            self._again = where

    def told(
        self, failures: tuple[Failure, ...], notes: tuple[Failure, ...]
    ) -> tuple[tuple[Failure, ...], tuple[Failure, ...]]:
        """Return failures and notes: beside another failure the end before a new start is none."""
        if self._again is None:
            return failures, notes
        again = [self._of(one) for one in failures if one.name in _ENDS]
        others = tuple(one for one in failures if one.name not in _ENDS)
        if others:
            return others, (*notes, *(replace(one, kind="note") for one in again))
        return tuple(again), notes

    def _of(self, failure: Failure) -> Failure:
        assert self._again is not None
        clock = _CLOCK.search(self._again.text)
        at = clock[0] if clock else f"line {self._again.line}"
        cause = f"the job {_ENDS[failure.name]} requeued; it started again at {at}"
        return replace(failure, cause=cause, fix=_FIX, others=(), alike=0)
