"""What torch's watchdog says: which collective did not end, on which ranks, and who never came.

Where the ranks left dumps of torch's flight recorder, those say it, and exactly.

Source: torch's ProcessGroupNCCL.cpp (checkTimeout, the watchdog's loop) and TraceUtils.h
(TORCH_NCCL_DESYNC_DEBUG).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from hpc_train.diagnose.rules import Failure
from hpc_train.diagnose.timeout_fixes import fix_of
from hpc_train.plan.hostlist import fold_numbers

if TYPE_CHECKING:
    from hpc_train.diagnose.flight_recorder import Stall
    from hpc_train.diagnose.rules import Evidence

_MAX_WORKS = 200
_MAX_BEFORE = 500
_TIMEOUT = re.compile(
    # Another process may write into the middle of it.
    r"Watchdog caught collective operat.{0,200}?ion timeout: WorkNCCL\((?:SeqNum=(?P<seq>\d+), )?"
    r"OpType=(?P<op>\w+)(?=[,)])(?:, NumelIn=(?P<numel>\d{1,18})\b)?"
    r"(?:.{0,200}?Timeout\(ms\)=(?P<ms>\d+))?"
)
# The same where the line is cut, or only the backtrace is there.
_ANY_TIMEOUT = re.compile(r"Watchdog caught co|WorkNCCL::checkTimeout")
_STATE = re.compile(
    r"\[PG (?:ID )?(?P<pg>[^\]]{1,80}?) Rank \d+\].{0,120}?(?:at|detected by watchdog at)"
    r" (?:NCCL )?work(?: sequence id)?: (?P<seq>\d+)(?:,| PG status:) last enqueued (?:NCCL )?work:"
    r" (?P<queued>-?\d+), last completed (?:NCCL )?work: (?P<done>-?\d+)"
)
_SIGNAL = re.compile(
    r"(?:\[PG (?:ID )?(?P<pg>[^\]]{1,80}?) Rank \d+\].{0,20}?)?"
    r"Received a dump signal due to a collective timeout from"
    r"\s{1,3}rank (?P<by>\d+).{0,120}?"
    r"Last enqueued NCCL work: (?P<queued>-?\d+), last completed NCCL work: (?P<done>-?\d+)"
)
_ABSENT = re.compile(
    r"\[(?P<ranks>[\d, -]+)\] (?:finished collective #\d+, but )?"
    r"(?:didn't join collective|are the lagging ranks that caused this timeout)"
)
# In these each rank may have its own number or size.
_UNEVEN = re.compile(r"SEND|RECV|ALLTOALL|COALESCED|GATHER$|SCATTER$")
_WHOLE = ("ALLGATHER", "REDUCE_SCATTER")
_RANK = re.compile(r"\[rank(\d+)\]|\[Rank (\d+)\]| Rank (\d+)\]")


class _Work(NamedTuple):
    seq: int
    op: str
    numel: str


class Timeouts:
    """Collects what the ranks' watchdogs say; bounded by the number of ranks."""

    def __init__(self) -> None:
        self._works: dict[_Work, set[int]] = {}
        self._groups: dict[tuple[int, int], str] = {}
        self._queued: dict[tuple[str, int], int] = {}
        self._absent: set[str] = set()
        self._evidence: list[Evidence] = []
        self._times = 0
        self._ms = 0
        self._by = ""
        self._last = ("", 0, "")  # file, number and text of the last line of any kind
        self._before = ""
        self.recorded: Stall | None = None

    def passes(self, line: str, where: Evidence) -> None:
        """See a line of any kind: what stands just before a time-out may tell of it."""
        if not self._evidence and not _ANY_TIMEOUT.search(line):
            self._last = where.file, where.line, line[:_MAX_BEFORE]

    def take(self, line: str, where: Evidence) -> bool:
        """Take a line; returns whether it was about a collective that timed out."""
        found = _RANK.search(line)
        rank = int(found[1] or found[2] or found[3]) if found else -1
        if match := _TIMEOUT.search(line):
            self._timed_out(match, rank)
        elif match := _STATE.search(line):
            self._groups[rank, int(match["seq"])] = match["pg"]
            if "Timeout at" not in line:
                return bool(self._works)
        elif match := _SIGNAL.search(line):
            self._by = match["by"]
            self._queued[match["pg"] or "", rank] = int(match["queued"])
        elif match := _ABSENT.search(line):
            self._absent.add(match["ranks"])
        elif not _ANY_TIMEOUT.search(line):
            return False
        self._times += 1
        if not self._evidence:
            file, number, said = self._last
            is_near = file == where.file and 0 <= where.line - number <= 2
            self._before = f"{said if is_near else ''} {line.partition('ProcessGroupNCCL')[0]}"
        if len(self._evidence) < 3:
            self._evidence.append(where)
        return True

    def _timed_out(self, match: re.Match[str], rank: int) -> None:
        self._ms = self._ms or int(match["ms"] or 0)
        work = _Work(int(match["seq"] or -1), match["op"], match["numel"] or "")
        if work in self._works or len(self._works) < _MAX_WORKS:
            self._works.setdefault(work, set()).add(rank)

    def failure(self) -> Failure | None:
        """Return the failure, None where nothing timed out."""
        if not self._evidence and self.recorded is None:
            return None
        recorded = self.recorded.evidence if self.recorded else ()
        return Failure(
            name="collective_timeout",
            cause=self.recorded.cause if self.recorded else self._cause(),
            fix=fix_of(
                self._before,
                is_apart=not self.recorded and bool(self._apart()),
                late="" if self.recorded else self._late(),
                has_recorder=any(work.numel for work in self._works),
            ),
            times=self._times or len(recorded),
            evidence=(*recorded, *self._evidence),
            of_another=True,
        )

    def _cause(self) -> str:
        late = self._late()
        tail = f"; {late}" if late else ""
        if not self._works:
            who = f": {self._numbers()}" if self._groups else ""
            who += f", told first by rank {self._by}" if self._by else ""
            return f"a collective did not end in time{who}{tail}"
        works = sorted(self._works.items())
        told = "; ".join(f"{_name(work)} on {rank_words(ranks)}" for work, ranks in works[:4])
        more = f"; and {len(works) - 4} others" if len(works) > 4 else self._also_at()
        within = f" within {self._ms / 1000:g} s" if self._ms else ""
        apart = self._apart()
        if apart == "certain":
            return (
                f"the ranks wait in different collectives{within}: {told}{more}. They left the"
                f" common order{tail}"
            )
        if apart == "ahead":
            tail = f"; some of these ranks are ahead, or left the common order{tail}"
        elif apart:
            tail = f"; if these ranks are one process group, they left the common order{tail}"
        return f"did not end{within}: {told}{more}{tail}"

    def _numbers(self) -> str:
        """Say which ranks stood at which number, of as many numbers as fit."""
        ranks: dict[int, set[int]] = {}
        for rank, seq in self._groups:
            ranks.setdefault(seq, set()).add(rank)
        told = [f"number {seq} on {rank_words(ranks[seq])}" for seq in sorted(ranks)]
        more = f", and {len(told) - 4} other numbers" if len(told) > 4 else ""
        return ", ".join(told[:4]) + more

    def _also_at(self) -> str:
        """Name ranks that stood at the number of the one collective that is told.

        Their line says neither which collective that is nor, for sure, of which process group.
        """
        if len(self._works) != 1:
            return ""
        ((work, here),) = self._works.items()
        groups = {self._groups.get((rank, work.seq), "") for rank in here} - {""}
        also = {
            rank
            for (rank, seq), group in self._groups.items()
            if seq == work.seq and rank >= 0 and group in groups
        }
        return f"; {rank_words(also - here)} stood at that number as well" if also - here else ""

    def _late(self) -> str:
        """Say who never came, where the log proves it."""
        absent = set(self._absent)
        if len(self._works) == 1:
            ((work, here),) = self._works.items()
            groups = {self._groups.get((rank, work.seq), "") for rank in here} - {""}
            # Of another group, or of none yet (-1), the numbers say nothing here.
            behind = {
                rank
                for (group, rank), last in self._queued.items()
                if 0 <= last < work.seq and rank >= 0 and groups <= {group}
            }
            if behind - here:
                absent.add(fold_numbers(behind - here))
        if not absent:
            return ""
        return f"never joined it: ranks {', '.join(sorted(absent))}"

    def _apart(self) -> Literal["", "likely", "ahead", "certain"]:
        """Whether ranks left the common order; the log may not tell of which group they are.

        A rank whose part has ended (the root of a broadcast) goes on to the next number.
        """
        kinds: dict[str, set[_Work]] = {}
        seen: set[int] = set()
        is_one_each = True
        for work, ranks in self._works.items():
            known = {rank for rank in ranks if rank >= 0}
            is_one_each &= not known & seen  # else it waits in several groups
            seen |= known
            if work.seq >= 0 and not _is_uneven(work.op):
                for rank in known:
                    kinds.setdefault(self._groups.get((rank, work.seq), ""), set()).add(work)
        unknown = kinds.pop("", set())
        apart = [works for works in kinds.values() if len(works) > 1]
        if any(len({work.seq for work in works}) < len(works) for works in apart):
            return "certain"
        if apart:
            return "ahead"
        works = unknown.union(*kinds.values())
        if unknown and is_one_each and len(works) > 1 and len(kinds) < 2:
            return "likely"
        return ""


def _is_uneven(op: str) -> bool:
    return not op.strip("_").startswith(_WHOLE) and _UNEVEN.search(op) is not None


def _name(work: _Work) -> str:
    number = f" number {work.seq}" if work.seq >= 0 else ""
    return f"{work.op}{number}" + (f" ({work.numel} elements)" if work.numel else "")


def rank_words(ranks: set[int]) -> str:
    """Return `ranks 0-3,7`, `rank 2`, or `a rank` where none is known."""
    known = {rank for rank in ranks if rank >= 0}
    return f"rank{'s'[: len(known) > 1]} {fold_numbers(known)}" if known else "a rank"
