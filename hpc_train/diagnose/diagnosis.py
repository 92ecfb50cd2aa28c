"""What a diagnosis says, as data and as lines."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from hpc_train.diagnose.rules import Evidence, Kind
from hpc_train.diagnose.shorten import fitting, shortened
from hpc_train.plan.hostlist import fold_numbers, folded

SCHEMA_VERSION = 1
_WIDTH = 200
_MOST_OTHERS = 5
_MOST_LINES = 25
# A row of a printed tensor or array.
_NUMBERS = re.compile(r"[\s\[\]+\-.,\d]*(?:\d|nan|inf)[\s\[\]+\-.,\deainf]*\Z")


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """One thing that failed, or that follows from it.

    Attributes:
        name: Of the rule; `docs/diagnose.md` has them all.
        cause: One sentence; empty where a line shows the failure and not its cause.
        fix: What to do; empty where nothing certain can be said.
        rank: That of the first line, None where nobody can tell; so are node, time and step.
        ranks: All whose lines say so, and so are nodes; empty where it is told of another.
        told_by: Ranks whose lines tell what happened to another.
        has_more: Whether lines were passed over that may name others.
        time: Seconds since the epoch.
        is_later: Whether the failure came after that time, which is that of an earlier line.
        is_dated: Whether the log tells the year of that time.
        times: The lines that say this sentence.
        alike: What further lines of this kind say: of another GPU, peer or number.
        where: `file:line` of the user's own code that failed; empty where nobody tells.
        kind: `cause` where it explains; anything else is what is known beside a cause.
    """

    name: str
    cause: str
    fix: str
    rank: int | None = None
    ranks: tuple[int, ...] = ()
    told_by: tuple[int, ...] = ()
    node: str = ""
    nodes: tuple[str, ...] = ()
    has_more: bool = False
    time: float | None = None
    is_later: bool = False
    is_dated: bool = True
    step: int | None = None
    evidence: tuple[Evidence, ...] = ()
    times: int = 1
    alike: str = ""
    where: str = ""
    kind: Kind = "cause"

    @property
    def is_known(self) -> bool:
        """Whether it says why, and not only what."""
        return bool(self.cause) and self.kind in ("cause", "open")

    @property
    def what_to_do(self) -> str:
        """The fix, without "what the line says" where its line is not quoted whole."""
        return fitting(self.fix, _quoted(self.evidence[0]) if self.evidence else "")

    @property
    def who(self) -> str:
        """`rank 3 on node2, 2026-11-21 08:04:51, step 120`, as far as it is known."""
        ranks = self.ranks or ((self.rank,) if self.rank is not None else ())
        nodes = folded(self.nodes or ([self.node] if self.node else []))
        more = " among others" * self.has_more
        on = f"on {nodes}" if nodes else ""
        rank = " ".join(word for word in (_ranks(ranks, more), on) if word)
        by = f"told by {_ranks(self.told_by, more)}" if self.told_by else ""
        clock = ""
        if self.time is not None:
            form = "%Y-%m-%d %H:%M:%S" if self.is_dated else "%m-%d %H:%M:%S"
            clock = time.strftime(form, time.localtime(self.time))
            clock = f"after {clock}" if self.is_later else clock
        step = f"step {self.step}" if self.step is not None else ""
        return ", ".join(part for part in (rank, by, clock, step) if part)

    def to_json(self) -> dict[str, Any]:
        """The finding as a document."""
        told = ("name", "rank", "time", "step", "times")
        return {
            **{name: getattr(self, name) for name in told},
            "cause": self.cause or None,
            "fix": self.fix or None,
            "node": self.node or None,
            "where": self.where or None,
            **{name: list(getattr(self, name)) for name in ("ranks", "nodes", "told_by")},
            "known": self.is_known,
            "evidence": [asdict(item) for item in self.evidence],
        }


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Findings, the culprit first; none where nothing failed.

    Attributes:
        of: The run, or the logs.
        state: Of a run: its state, and the attempt that is told of.
        traceback: The first one in time, where no finding says why.
        traceback_at: Its first line.
        notes: What is worth knowing beside: earlier attempts, and what could not be read.
    """

    of: str
    state: str = ""
    findings: tuple[Culprit, ...] = ()
    traceback: tuple[str, ...] = ()
    traceback_at: Evidence | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def sentence(self) -> str:
        """Who and why in one line; empty where nothing is known to have failed."""
        if not self.findings or not self.findings[0].cause:
            return ""
        first = self.findings[0]
        return f"{first.cause} ({first.who})" if first.who else first.cause

    def to_json(self) -> dict[str, Any]:
        """The document of `hpc-train diagnose --json`."""
        first = self.findings[0].to_json() if self.findings else {}
        alike = ("cause", "name", "rank", "node", "time", "step", "known", "fix")
        return {
            "schema_version": SCHEMA_VERSION,
            "of": self.of,
            "state": self.state or None,
            **{name: first.get(name) for name in alike},
            "evidence": first.get("evidence", []),
            "findings": [finding.to_json() for finding in self.findings],
            "traceback": list(self.traceback),
            "notes": list(self.notes),
        }


def told(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines for a reader; the first says whether and why."""
    if diagnosis.state:
        yield diagnosis.state
    if not diagnosis.findings:
        if not diagnosis.state:
            yield f"no failure is recognised in {diagnosis.of}"
    else:
        first, *others = diagnosis.findings
        yield from _culprit(first)
        yield from (
            _cut(f"also: {it.cause or _line(it.evidence[0])}") for it in others[:_MOST_OTHERS]
        )
        if len(others) > _MOST_OTHERS:
            yield f"also: {len(others) - _MOST_OTHERS} more (--json has them)"
    if diagnosis.traceback:
        at = diagnosis.traceback_at
        where = f" ({at.file}:{at.line})" if at else ""
        yield f"the first traceback{where}:"
        lines = [line for line in diagnosis.traceback if not _NUMBERS.match(line)]
        yield from (shortened(f"  {line}", _WIDTH) for line in lines[-_MOST_LINES:])
    yield from (f"note: {note}" for note in diagnosis.notes)


def _ranks(ranks: tuple[int, ...], more: str = "") -> str:
    return f"rank{'s'[: len(ranks) > 1]} {fold_numbers(ranks)}{more}" if ranks else ""


def _cut(text: str) -> str:
    """End a long sentence between two words: half a number would be another one."""
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3].rpartition(' ')[0]} ..."


def _culprit(first: Culprit) -> Iterator[str]:
    what = first.cause or "a line that no rule knows"
    where = f" ({first.where})" if first.where and first.where not in what else ""
    yield f"failed: {what}{where}{'' if first.is_known else '; no rule knows why'}"
    if first.who:
        yield f"  {first.who}"
    yield from map(_quoted, first.evidence)
    if first.times > len(first.evidence):
        yield f"  {first.times} lines say so"
    if first.alike:
        yield _cut(f"  {first.alike}")
    if first.what_to_do:
        yield f"  fix: {first.what_to_do}"


def _quoted(item: Evidence) -> str:
    where = _place(item)
    return f"  {where}{shortened(item.text, _WIDTH - len(where) - 2)}"


def _line(item: Evidence) -> str:
    return f"{_place(item)}{item.text}"


def _place(item: Evidence) -> str:
    return f"{item.file}:{item.line}: " if item.line else f"{item.file}: "
