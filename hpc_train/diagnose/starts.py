"""Ranks that wait for each other at a job's start: who came, by the lines that these write.

Sources: torch/distributed/distributed_c10d.py (_store_based_barrier), Lightning's
_init_dist_connection and DeepSpeed strategy; nccl-tests' src/util.cu. Such a line alone is
healthy: it counts where a log ends with it.
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
_ALL_CAME = "All distributed processes registered"
# Who ends a job that waits writes behind it.
_STOPPED = re.compile(
    r"CANCELLED|slurmstepd: |srun: |Terminated|KeyboardInterrupt|SIGTERM|SIGINT|death signal"
)
_CANCELLED = re.compile(r"\bCANCELLED AT \d[\dT:-]{1,30}(?P<limit> DUE TO TIME LIMIT)?")
# Of the launcher, whose options a fix may name.
_TORCHRUN = re.compile(r"torchrun|torch[./]distributed[./](?:run|launch|elastic)\b")
_NEAR = 5  # lines
_TABLE = re.compile(r"#\s{1,20}size\s{1,20}count\s{1,20}type ")
_DEVICE = re.compile(
    r"#\s{1,20}Rank\s{1,10}(\d{1,6})\s{1,10}(?:Group\s{1,10}\d{1,6}\s{1,10})?"
    r"Pid\s{1,10}\d{1,10} on "
)
_ONE_EACH = re.compile(r"# nThread 1 nGpus 1 ")
_MAX_DEVICES = 100_000
_UNITS = 1  # lines of the head below that one


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
        self._stopped_at: Evidence | None = None
        self._end = ""  # how the job was ended behind such a line
        self._has_torchrun = False
        self._table_at: Evidence | None = None
        self._is_one_each = False
        self._devices: list[int] = []  # the ranks of nccl-tests' heads, in the order of their lines

    def sees(self, line: str) -> None:
        """Take a line of any kind for what it tells of the launcher."""
        if not self._has_torchrun and "torch" in line:
            self._has_torchrun = _TORCHRUN.search(line) is not None

    def take(self, line: str, where: Evidence) -> None:
        """Take a line of any kind."""
        if _STOPPED.search(line) and self._follows(where):
            if found := _CANCELLED.search(line):
                self._end = "timed out" if found["limit"] else "cancelled"
            self._stopped_at = where
            return
        self._end = ""
        if _ALL_CAME in line:
            self._members_at = None
        elif found := _WAITS.search(line):
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
        else:
            self._take_tests(line, where)

    def _take_tests(self, line: str, where: Evidence) -> None:
        """Take a line of the heads of nccl-tests."""
        if _ONE_EACH.search(line):
            self._is_one_each = True
        elif found := _DEVICE.search(line):
            if self._table_at:  # a new head
                self._table_at = None
                self._devices.clear()
            if len(self._devices) < _MAX_DEVICES:
                self._devices.append(int(found[1]))
        elif _TABLE.search(line):
            self._table_at = where

    def _follows(self, where: Evidence) -> bool:
        """Whether a line is behind one that waits, with only such lines between."""
        begun = (self._stopped_at, self._waits_at, self._members_at)
        return any(at and at.file == where.file and 0 <= where.line - at.line < 2 for at in begun)

    def _is_last(self, at: Evidence, last: dict[str, int]) -> bool:
        stopped = self._stopped_at
        is_stopped = stopped and stopped.file == at.file and stopped.line == last[at.file]
        return last[at.file] == at.line or bool(is_stopped)

    def at_end(self, last: dict[str, int]) -> Iterator[tuple[str, Evidence]]:
        """Yield (what a log ends with, its line) in the form of the rules; `last` lines by file."""
        at = self._waits_at
        # Said every ten seconds or more: once is no hang.
        if at and self._is_last(at, last) and max(self._waits.values()) > 1:
            came = self._joined
            if came != self._of:
                absent = {*range(self._of)} - {*self._waits}
                is_certain = len(absent) == self._of - came
                who = f"; did not come to the barrier: {_ranks(absent)}" if is_certain else ""
                yield f"{self._waits_how()}: {came} of {self._of} came{who}{self._by()}", at
        at = self._members_at
        if at and self._is_last(at, last) and not self._is_mixed:
            came = len(self._members)
            if came < self._world and max(self._members.values()) == 1:
                missing = _ranks({*range(self._world)} - {*self._members})
                said = f"{came} of {self._world} came, by what this log has; not in it: {missing}"
                # A log of which a part was copied ends so as well.
                if last[at.file] == at.line:
                    yield f"begun by then: {said}", at
                else:
                    yield f"{self._waits_how()}: {said}{self._by(is_lightning=True)}", at
        if at and last[at.file] - at.line <= _NEAR and self._is_mixed:
            twice = {rank for rank, count in self._members.items() if count > 1}
            if absent := {*range(self._world)} - {*self._members}:
                said = f"{_ranks(twice)} began more than once, and {_ranks(absent)} not at all"
                yield f"begins twice: of {self._world} ranks {said}", at
        at = self._table_at
        if at and last[at.file] - at.line <= _UNITS:
            yield f"the table of nccl-tests has no row{self._units()}", at

    def _waits_how(self) -> str:
        return f"{self._end or 'waits'} at the start"

    def _by(self, *, is_lightning: bool = False) -> str:
        """What has started the ranks, where the log tells that and a fix depends on it."""
        if self._has_torchrun:
            return " (torchrun)"
        return " (Lightning)" if is_lightning and self._end else ""

    def _units(self) -> str:
        """What the heads above a table tell of the ranks that it is of."""
        firsts = sum(rank == 0 for rank in self._devices)
        if firsts > 1:
            return f": {firsts} programs are rank 0 each"
        return ": one rank alone" if self._is_one_each and len(self._devices) == 1 else ""


def _ranks(ranks: set[int]) -> str:
    return f"rank{'s'[: len(ranks) > 1]} {fold_numbers(ranks)}"
