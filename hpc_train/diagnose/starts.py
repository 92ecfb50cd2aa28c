"""Ranks that wait for each other at a job's start: who came, by the lines that these write.

Sources: torch/distributed/distributed_c10d.py (_store_based_barrier), Lightning's
_init_dist_connection. Such a line alone is healthy: it counts where a log ends with it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from hpc_train.plan.hostlist import fold_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpc_train.diagnose.rules import Evidence

_WAITS = re.compile(
    r"Waiting in store based barrier to initialize process ?group for .{0,60}?"
    r"rank: (?P<rank>\d{1,6}), key: (?P<key>\S{1,200}) \(world_size=(?P<of>\d{1,6}),"
    r" (?:worker_count|num_workers_joined)=(?P<n>\d{1,7}),"
)
_MEMBER = re.compile(r"GLOBAL_RANK: (?P<rank>\d{1,6}), MEMBER: \d{1,6}/(?P<of>\d{1,6})\b")
_NEAR = 5  # lines


class Starts:
    """Takes these lines; what it keeps is bounded by the ranks."""

    def __init__(self) -> None:
        self._key = ""
        self._joined = self._of = 0
        self._waits: Counter[int] = Counter()
        self._waits_at: Evidence | None = None
        self._world = 0
        self._members: Counter[int] = Counter()
        self._members_at: Evidence | None = None
        self._is_mixed = False

    def take(self, line: str, where: Evidence) -> None:
        """Take a line of any kind."""
        if found := _WAITS.search(line):
            if found["key"] != self._key:
                self._key = found["key"]
                self._waits.clear()
            self._joined, self._of = int(found["n"]), int(found["of"])
            self._waits[int(found["rank"])] += 1
            self._waits_at = where
        elif found := _MEMBER.search(line):
            rank, self._world = int(found["rank"]), int(found["of"])
            # A start after another one begins when all of the first have come.
            self._is_mixed |= (
                rank not in self._members and max(self._members.values(), default=0) > 1
            )
            self._members[rank] += 1
            self._members_at = where

    def at_end(self, last: dict[str, int]) -> Iterator[tuple[str, Evidence]]:
        """Yield (what a log ends with, its line) in the form of the rules; `last` lines by file."""
        at = self._waits_at
        # Said every ten seconds or more: once is no hang.
        if at and last[at.file] == at.line and max(self._waits.values()) > 1:
            came = self._joined
            if came != self._of:
                absent = {*range(self._of)} - {*self._waits}
                is_certain = len(absent) == self._of - came
                who = f"; did not come to the barrier: {_ranks(absent)}" if is_certain else ""
                yield f"waits at the start: {came} of {self._of} came{who}", at
        at = self._members_at
        if at and last[at.file] - at.line <= _NEAR and self._is_mixed:
            twice = {rank for rank, count in self._members.items() if count > 1}
            if absent := {*range(self._world)} - {*self._members}:
                said = f"{_ranks(twice)} began more than once, and {_ranks(absent)} not at all"
                yield f"begins twice: of {self._world} ranks {said}", at


def _ranks(ranks: set[int]) -> str:
    return f"rank{'s'[: len(ranks) > 1]} {fold_numbers(ranks)}"
