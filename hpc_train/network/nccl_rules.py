"""What a line of a log means: rules as data, and the one engine that applies them.

A rule is a pattern, where it counts, and what is then certain: cause, fix, source. The table is in
`nccl_causes`; its order is from root to consequence. What no rule knows is kept as a warning.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Evidence", "Failure", "Hit", "Hits", "Rule", "Warned"]

Kind = Literal["cause", "follows", "note", "harmless"]

_MAX_EVIDENCE = 3
_MAX_HOSTS = 10_000
_MAX_WARNINGS = 50
_MAX_KINDS = 20_000
_MAX_TEXT = 300
# What differs between two warnings of one kind: pointers, addresses with ports, long numbers.
# What stands in a sentence where the line lacks it.
_UNSAID = {
    "peer": "the peer",
    "hca": "an HCA",
    "error": "no reason given",
    "ranks": "several ranks",
    "call": "libfabric",
}
_VARIES = re.compile(r"0x[0-9a-f]+|\d+\.\d+\.\d+\.\d+|<\d+>|nccl-\w{6}|\d{4,}")


@dataclass(frozen=True)
class Rule:
    """One thing that can be told from a line.

    Attributes:
        name: Its name in JSON and docs.
        pattern: A regular expression, searched in `place text`; its groups fill `cause` and `fix`.
            Quantifiers are bounded, so that no line makes it slow.
        cause: One sentence. `{group}` stands for what the pattern caught.
        fix: What to do.
        source: Who writes the line.
        kind: `cause` is a failure; `follows` is one that another failure brings about; a `note` is
            worth telling and no failure; `harmless` is neither.
        level: `WARN` counts in warnings and in torch's words, `INFO` in the other lines, `ANY` in
            both.
        unless: Rules that tell the same more exactly; beside one of them this one is left out.
    """

    name: str
    pattern: str
    cause: str = ""
    fix: str = ""
    source: str = ""
    kind: Kind = "cause"
    level: Literal["WARN", "INFO", "ANY"] = "WARN"
    unless: tuple[str, ...] = ()

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first asked for."""
        return re.compile(self.pattern)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A line of a log.

    Attributes:
        file: Its name as it was given; empty for lines that came without a file.
        line: Its number, from 1.
        text: The line, cut where it is long.
    """

    file: str
    line: int
    text: str


@dataclass(kw_only=True)
class Hit:
    """What a rule found.

    Attributes:
        cause: Filled in from the first match.
        fix: The same.
        first: Position of the first match over all files.
        last: That of the last one.
        times: Lines.
        hosts: Who said so, as far as the lines tell.
        evidence: The first of them.
    """

    rule: Rule
    cause: str
    fix: str
    first: int
    last: int = 0
    times: int = 0
    hosts: set[str] = field(default_factory=set)
    evidence: list[Evidence] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Warned:
    """A warning that no rule explains."""

    text: str
    times: int
    hosts: tuple[str, ...]
    evidence: Evidence
    first: int


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failure, told once.

    Attributes:
        name: The rule's.
        cause: One sentence; empty where the log shows the failure and not its cause.
        fix: What to do.
        source: Who wrote the lines.
        times: Lines that say so.
        hosts: Who said so, sorted.
        evidence: The first lines.
    """

    name: str
    cause: str
    fix: str
    evidence: tuple[Evidence, ...]
    source: str = ""
    times: int = 1
    hosts: tuple[str, ...] = ()


class Hits:
    """Applies the rules; what it keeps is bounded, and what it drops is counted."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        rules = tuple(rules)
        self._rules = {
            level: [rule for rule in rules if rule.level in (level, "ANY")]
            for level in ("WARN", "INFO")
        }
        self._order = {rule.name: number for number, rule in enumerate(rules)}
        self._hits: dict[str, Hit] = {}
        # A flood says the same in many lines: each kind is matched once.
        self._kinds: dict[tuple[str, str, str], Rule | None] = {}
        self._unknown: dict[str, tuple[Counter[str], Evidence, int]] = {}
        self.lines = 0
        self.dropped = 0

    def take(
        self, level: str, text: str, place: str, host: str, where: Evidence, *, is_warning: bool
    ) -> Rule | None:
        """Take one text, and return the rule it is of; an unknown warning is kept."""
        self.lines += 1
        said = f"{place} {text}"
        key = (level, place.partition(":")[0], _VARIES.sub("#", text[:_MAX_TEXT]))
        if key not in self._kinds:
            if len(self._kinds) >= _MAX_KINDS:
                self.dropped += 1
                return None
            self._kinds[key] = next(
                (rule for rule in self._rules[level] if rule.expression.search(said)), None
            )
        rule = self._kinds[key]
        if rule is not None:
            self._hit(rule, said, host, where)
        elif is_warning:
            self._keep(key[2], host, where)
        return rule

    def _hit(self, rule: Rule, text: str, host: str, where: Evidence) -> None:
        hit = self._hits.get(rule.name)
        if hit is None:
            match = rule.expression.search(text)
            groups = match.groupdict() if match else {}
            said = {key: value or _UNSAID.get(key, "?") for key, value in groups.items()}
            hit = self._hits[rule.name] = Hit(
                rule=rule,
                cause=rule.cause.format_map(said),
                fix=rule.fix.format_map(said),
                first=self.lines,
            )
        hit.last = self.lines
        hit.times += 1
        if host and len(hit.hosts) < _MAX_HOSTS:
            hit.hosts.add(host)
        if len(hit.evidence) < _MAX_EVIDENCE and where not in hit.evidence:
            hit.evidence.append(where)

    def _keep(self, kind: str, host: str, where: Evidence) -> None:
        if kind not in self._unknown:
            if len(self._unknown) >= _MAX_WARNINGS:
                self.dropped += 1
                return
            self._unknown[kind] = (Counter(), where, self.lines)
        counter = self._unknown[kind][0]
        if host in counter or len(counter) < _MAX_HOSTS:
            counter[host] += 1

    def of(self, kind: Kind) -> list[Hit]:
        """Return what was found of that kind, roots first."""
        found = [
            hit
            for hit in self._hits.values()
            if hit.rule.kind == kind and not any(name in self._hits for name in hit.rule.unless)
        ]
        return sorted(found, key=lambda hit: self._order[hit.rule.name])

    def unknown(self) -> list[Warned]:
        """Return the warnings that no rule knows, in their order."""
        return [
            Warned(
                text=where.text,
                times=counter.total(),
                hosts=tuple(sorted(host for host in counter if host)),
                evidence=where,
                first=first,
            )
            for counter, where, first in self._unknown.values()
        ]
