"""Collectives that are not the same on all ranks: in kind, or in shape alone.

Source: torch's ProcessGroupWrapper.cpp (TORCH_DISTRIBUTED_DEBUG=DETAIL). Before 2.1 each rank tells
its own call alone, so what differs shows only between lines.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from hpc_train.diagnose.timeouts import rank_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hpc_train.diagnose.rules import Evidence

_CALL = re.compile(
    r"Rank (?P<rank>\d{1,6}) is running (?:inconsistent )?collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=\d{1,19}(?:, ?)?)?OpType=(?P<op>\w{1,40})"
    r"(?:, ?TensorShape ?=(?P<shape>(?:\[[\d, ]{0,200}\] ?){1,20}))?"
)
_MAX_RANKS = 10_000
_MAX_LINES = 3
_MAX_SAID = 4


class Calls:
    """Takes lines of torch's wrapper; bounded by the ranks."""

    def __init__(self) -> None:
        self._of_rank: dict[int, tuple[str, str]] = {}
        self._at: list[tuple[str, Evidence]] = []

    def take(self, line: str, where: Evidence) -> bool:
        """Take a line; returns whether it tells a rank's call."""
        found = [*_CALL.finditer(line)] if "CollectiveFingerPrint(" in line else []
        for call in found:
            if len(self._of_rank) < _MAX_RANKS:
                said = call["op"], (call["shape"] or "").strip()
                self._of_rank.setdefault(int(call["rank"]), said)
        if found and len(self._at) < _MAX_LINES:
            self._at.append((line, where))
        return bool(found)

    def at_end(self) -> Iterator[tuple[str, Evidence]]:
        """Yield what differs in the form of the rules, or the lines as they are; each once."""
        lines, self._at = self._at, []
        told = self._told()
        for line, where in lines:
            yield told or line, where

    def _told(self) -> str:
        calls = set(self._of_rank.values())
        ops = {op for op, _ in calls}
        if len(ops) > 1:
            return f"other collectives: {self._by(lambda op, _: op)}"
        shapes = {shape for _, shape in calls}
        if len(shapes) > 1 and "" not in shapes:
            return f"other shapes: {next(iter(ops))} of {self._by(lambda _, shape: shape)}"
        return ""

    def _by(self, what: Callable[[str, str], str]) -> str:
        ranks: dict[str, set[int]] = defaultdict(set)
        for rank, said in sorted(self._of_rank.items()):
            ranks[what(*said)].add(rank)
        told = [f"{said} on {rank_words(who)}" for said, who in ranks.items()]
        more = f", and {len(told) - _MAX_SAID} others" if len(told) > _MAX_SAID else ""
        return ", ".join(told[:_MAX_SAID]) + more
