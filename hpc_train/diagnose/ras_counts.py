"""What ncclras says of ranks that are at different operations -> a note.

Source: NCCL's src/ras/client_support.cc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hpc_train.diagnose.rules import Failure
from hpc_train.plan.hostlist import fold_numbers, folded

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence

_COUNTS = re.compile(r"Communicator ranks have different (?P<what>\w{1,40}) operation counts")
_LAUNCHED = re.compile(
    r"(?:(?<!\d)(?P<n>\d{1,9}) ranks have|Rank (?P<rank>\d+) has) (?:launched up to operation"
    r" (?P<op>\d+)|not launched any operations)"
    r"(?: -- GPU \S{1,40} managed by process \d+ on node (?P<host>\S{1,200}))?"
)
_RANK = re.compile(
    r"Rank (?P<rank>\d+) -- (?:GPU \S{1,40} managed by .{1,40} on node (?P<host>\S+))?"
)
_MAX_GROUPS = 100


class RasCounts:
    """The first report of ncclras whose ranks are at different operations."""

    def __init__(self) -> None:
        self._what = ""
        self._is_open = False
        self._groups: list[tuple[int, str, set[int], set[str]]] = []
        self._evidence: list[Evidence] = []

    def take(self, line: str, where: Evidence) -> bool:
        """Take a line; returns whether it was about the ranks' operations."""
        if found := _COUNTS.search(line):
            self._is_open = not self._what
            self._what = self._what or found["what"]
        elif found := _LAUNCHED.search(line):
            if self._is_open and len(self._groups) < _MAX_GROUPS:
                ranks = {int(found["rank"])} if found["rank"] else set()
                hosts = {found["host"]} if found["host"] else set()
                at = (int(found["n"] or 1), found["op"] or "none", ranks, hosts)
                self._groups.append(at)
        elif (found := _RANK.search(line)) and self._groups:
            if self._is_open:
                self._groups[-1][2].add(int(found["rank"]))
                self._groups[-1][3].update({found["host"]} - {None})
            return True
        else:
            return False
        if self._is_open and len(self._evidence) < 3:
            self._evidence.append(where)
        return True

    def note(self) -> Failure | None:
        """Return what the report says, None where there was none.

        It is a warning of ncclras: its counts are of a moment, and it has other words for errors.
        """
        if not self._groups:
            return None
        told = "; ".join(
            f"{count} rank{'s'[: count > 1]}{_named(count, ranks, hosts)} at {number}"
            for count, number, ranks, hosts in self._groups[:4]
        )
        if len(self._groups) > 4:
            told += f"; and others at {len(self._groups) - 4} further counts"
        return Failure(
            name="ras_counts",
            cause=f"the ranks were not at the same {self._what} operation: {told}",
            fix="ask ncclras again: counts that stand still are a hang: the stacks (py-spy dump) of"
            " the ranks that are behind, and did they call the same collectives? Counts that go on"
            " are ranks that were only not in step at that moment",
            kind="note",
            evidence=tuple(self._evidence),
        )


def _named(count: int, ranks: set[int], hosts: set[str]) -> str:
    """Return ` (0-3 on n1,n2)`; a long report leaves ranks out."""
    if not ranks:
        return ""
    more = " among others" if len(ranks) < count else ""
    return f" ({fold_numbers(ranks)}{more}{' on ' + folded(sorted(hosts)) if hosts else ''})"
