"""What a line of a log means: rules as data, and the one engine that applies them.

A rule is a pattern, where it counts, and what is then certain: cause and fix. The tables are the
files of `causes/`, in the order of `FILES`, each from root to consequence. What no rule knows is
kept as a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from hpc_train.diagnose.sums import with_sums
from hpc_train.diagnose.who import is_part_of_address, node_of, rank_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# The first rule that fits says what a line means: what is exact comes before what is general.
FILES = ("run.txt", "program.txt", "training.txt", "node.txt", "nccl.txt")

Kind = Literal["cause", "follows", "last", "open", "note", "harmless"]
Level = Literal["WARN", "INFO", "JOB", "RUN", "ANY"]

_MAX_EVIDENCE = 3
_MAX_HOSTS = 10_000
_MAX_WARNINGS = 50
_MAX_KINDS = 20_000
MAX_TEXT = 300
MAX_SAYINGS = 64
_MAX_COMPARED = 10_000
_MAX_SPEAKERS = 20_000
_MAX_ALIKE = 100  # so many lines of one kind that are not NCCL's the sieve lets through
# What stands in a sentence where the line lacks it.
_UNSAID = {
    "peer": "the peer",
    "hca": "an HCA",
    "error": "no reason given",
    "ranks": "several ranks",
    "call": "libfabric",
    "key": "the log does not name the key",
    "node": "the log does not name it",
    "port": "unknown",
    # One of two that a pattern catches.
    **dict.fromkeys(("at", "address", "symbol", "file", "target", "machine"), ""),
}
# What differs between two warnings of one kind: pointers, addresses with ports, long numbers.
_VARIES = re.compile(r"0x[0-9a-f]+|\d+\.\d+\.\d+\.\d+|<\d+>|nccl-\w{6}|\d{4,}")


@dataclass(frozen=True)
class Rule:
    """One thing that can be told from a line.

    Attributes:
        name: Its name in JSON and docs.
        pattern: A regular expression, searched in `place text`; its groups fill `cause` and `fix`.
            Quantifiers are bounded, so that no line makes it slow.
        cause: One sentence. `{group}` stands for what the pattern caught; what stands in `[[ ]]` is
            left out where the pattern did not catch all of its groups.
        fix: What to do; empty where nothing holds for every log that has such a line.
        kind: `cause` is a failure; `follows` is one that another failure brings about; `last` is
            one that is told where nothing else is known, and so is an `open` one, if it was said
            again and again and a log ends with it; a `note` is worth telling and no failure;
            `harmless` is neither.
        level: `WARN` counts in warnings and in torch's words about NCCL and CUDA, `INFO` in NCCL's
            other lines, `JOB` in lines beside NCCL's, `RUN` in what the history of a run or Slurm's
            record of its job says, `ANY` in all.
        of_another: The line is not of the one who is to blame, but of one who waited for it or
            lost it.
        unless: Rules that tell the same more exactly; beside one of them this one is left out.
    """

    name: str
    pattern: str
    cause: str = ""
    fix: str = ""
    kind: Kind = "cause"
    level: Level = "WARN"
    unless: tuple[str, ...] = ()
    of_another: bool = False
    source: str = ""
    file: str = ""

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first asked for."""
        return re.compile(self.pattern)


_MACRO = re.compile(r"(@[A-Z_]{2,})(?:`(.*?)`)?")
_PARTS = {"~": "pattern", "=": "cause", ">": "fix", "<": "source"}
_OPTIONAL = re.compile(r"\[\[(.*?)\]\]")
_GROUP = re.compile(r"\{(\w+)\}")


@cache
def read_rules(*names: str) -> tuple[Rule, ...]:
    """Return the rules of the files; the head of `nccl.txt` says how they are written."""
    return tuple(rule for name in names or FILES for rule in _rules_of(name))


@cache
def read_words() -> tuple[str, ...]:
    """Return regular expressions of what lets a line through that is not NCCL's own."""
    return tuple(line[2:] for name in FILES for line in _lines_of(name) if line[:2] == "! ")


def _lines_of(name: str) -> list[str]:
    return (Path(__file__).parent / "causes" / name).read_text("utf-8").splitlines()


def _rules_of(name: str) -> Iterator[Rule]:
    macros: dict[str, str] = {}
    blocks: list[dict[str, str]] = []
    for line in _lines_of(name):
        mark, said = line[:1], line[2:]
        if mark == "@":
            macro, _, macros[macro] = line.partition(" ")
        elif mark == "[":
            blocks.append({"head": line})
        elif mark in _PARTS and blocks:
            part = _PARTS[mark]
            between = "; " if mark == "<" else "|"
            blocks[-1][part] = f"{blocks[-1][part]}{between}{said}" if part in blocks[-1] else said
    return (_rule(block, macros, name) for block in blocks)


def _rule(block: dict[str, str], macros: dict[str, str], file: str) -> Rule:
    head, _, unless = block.pop("head").partition(" unless ")
    name, _, rest = head[1:].partition("]")
    made = {part: _expanded(_expanded(text, macros), macros) for part, text in block.items()}
    kinds: list[Kind] = [kind for kind in get_args(Kind) if kind in rest.split()]
    levels: list[Level] = [level for level in get_args(Level) if level in rest.split()]
    return Rule(
        name=name,
        pattern=made["pattern"],
        cause=made.get("cause", ""),
        fix=made.get("fix", ""),
        kind=kinds[0] if kinds else "cause",
        level=levels[0] if levels else "WARN",
        unless=tuple(unless.split()),
        of_another="of_another" in rest.split(),
        source=made.get("source", ""),
        file=file,
    )


def _expanded(text: str, macros: Mapping[str, str]) -> str:
    """What follows a macro in backticks may hold another one, which a second pass expands."""
    return _MACRO.sub(lambda found: macros[found[1]].replace("%s", found[2] or ""), text)


WHOLE_LOG = "run with NCCL_DEBUG=INFO on all ranks, and read the log of the rank that ended first"
_UNKNOWN = Rule("warning", "", fix=WHOLE_LOG)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A line of a log, cut where it is long and without its runs of blanks.

    Its number is from 1, its file's name may be empty.
    """

    file: str
    line: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failure, note or warning, told once, with its first lines and all hosts that said so.

    Attributes:
        cause: One sentence; empty where the log shows the failure and not its cause.
        times: The lines that say this sentence.
        alike: Further lines of the rule: they name another GPU, peer or number.
        others: What they say, the first of it.
        firsts: The first line of each file.
        ranks: Those that the lines name as their own, and so are `nodes`.
        labels: The numbers before the lines, which may be tasks.
        has_more: Whether lines were passed over that may name other ranks or nodes.
    """

    name: str
    cause: str
    fix: str
    evidence: tuple[Evidence, ...]
    times: int = 1
    alike: int = 0
    hosts: tuple[str, ...] = ()
    kind: Kind = "cause"
    firsts: tuple[Evidence, ...] = ()
    others: tuple[Failure, ...] = ()
    of_another: bool = False
    ranks: frozenset[int] = frozenset()
    labels: frozenset[int] = frozenset()
    nodes: frozenset[str] = frozenset()
    has_more: bool = False


@dataclass(kw_only=True)
class _Saying:
    """One sentence of a rule, and the lines that say it."""

    cause: str
    fix: str
    times: int = 0
    hosts: set[str] = field(default_factory=set)
    evidence: list[Evidence] = field(default_factory=list)
    firsts: dict[str, Evidence] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    labels: set[int] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def _speaks(self, host: str, where: Evidence) -> None:
        rank = rank_of(where)
        label = rank_of(where, is_labelled=True) if where.text[:1].isdigit() else rank
        if rank is not None:
            self.ranks.add(rank)
        if label is not None:
            self.labels.add(label)
        if node := host or node_of(where):
            self.nodes.add(node)

    def add(self, host: str, where: Evidence) -> None:
        self.times += 1
        host = "" if is_part_of_address(host) else host
        if host and len(self.hosts) < _MAX_HOSTS:
            self.hosts.add(host)
        if len(self.evidence) < _MAX_EVIDENCE and where not in self.evidence:
            self.evidence.append(where)
        if len(self.firsts) < _MAX_HOSTS:
            self.firsts.setdefault(where.file, where)
        if self.times <= _MAX_SPEAKERS:
            self._speaks(host, where)


@dataclass(kw_only=True)
class Hit:
    """The lines of a rule, by what they say; first and last are texts' numbers, `at` a line."""

    rule: Rule
    first: int
    last: int = 0
    at: Evidence | None = None
    times: int = 0
    sayings: dict[str, _Saying] = field(default_factory=dict)

    @property
    def evidence(self) -> list[Evidence]:
        """The first lines that say the first sentence."""
        return next(iter(self.sayings.values())).evidence

    def add(self, number: int, text: str, host: str, where: Evidence) -> None:
        """Count one more line; what it says is told apart as far as that is bounded."""
        self.last, self.at = number, where
        self.times += 1
        if self.sayings and "{" not in self.rule.cause:
            cause, fix = next((said.cause, said.fix) for said in self.sayings.values())
        elif self.times <= _MAX_COMPARED and (match := self.rule.expression.search(text)):
            cause, fix = _sentences(self.rule, match.groupdict())
        else:
            return
        if cause in self.sayings or len(self.sayings) < MAX_SAYINGS:
            self.sayings.setdefault(cause, _Saying(cause=cause, fix=fix)).add(host, where)

    def failure(self, before: str = "") -> Failure:
        """Return it as what is told."""
        first, *others = (self._failure(said, before) for said in self.sayings.values())
        return replace(first, others=tuple(others))

    def _failure(self, said: _Saying, before: str) -> Failure:
        return Failure(
            name=self.rule.name,
            cause=before + said.cause,
            fix=said.fix,
            times=said.times,
            alike=self.times - said.times,
            hosts=tuple(sorted(said.hosts)),
            evidence=tuple(said.evidence),
            kind=self.rule.kind,
            firsts=tuple(said.firsts.values()),
            of_another=self.rule.of_another,
            ranks=frozenset(said.ranks),
            labels=frozenset(said.labels),
            nodes=frozenset(said.nodes),
            has_more=self._has_more(said),
        )

    def _has_more(self, said: _Saying) -> bool:
        """Whether lines that say the same may have been passed over, here or by the sieve."""
        most = _MAX_COMPARED if "{" in self.rule.cause else _MAX_SPEAKERS
        is_nccl = bool(said.evidence) and "NCCL" in said.evidence[0].text
        return self.times > most or (self.times >= _MAX_ALIKE and not is_nccl)


class Hits:
    """Applies the rules; what it keeps is bounded, and what it drops is counted."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        rules = tuple(rules)
        self._rules = {
            level: [rule for rule in rules if rule.level in (level, "ANY")]
            for level in ("WARN", "INFO", "JOB", "RUN")
        }
        self._order = {rule.name: number for number, rule in enumerate(rules)}
        self._hits: dict[str, Hit] = {}
        # A flood says the same in many lines: each kind is matched once.
        self._kinds: dict[tuple[str, str, str], Rule | None] = {}
        self._unknown: dict[str, Hit] = {}
        self.lines = 0
        self.dropped = 0

    def take(
        self, level: str, text: str, place: str, host: str, where: Evidence, *, is_warning: bool
    ) -> Rule | None:
        """Take one text, and return the rule it is of; an unknown warning is kept."""
        self.lines += 1
        said = f"{place} {text}"
        key = (level, place.partition(":")[0], _VARIES.sub("#", text[:MAX_TEXT]))
        if key not in self._kinds:
            if len(self._kinds) >= _MAX_KINDS:
                self.dropped += 1
                return None
            self._kinds[key] = next(
                (rule for rule in self._rules[level] if rule.expression.search(said)), None
            )
        rule = self._kinds[key]
        if rule is not None:
            hit = self._hits.setdefault(rule.name, Hit(rule=rule, first=self.lines))
            hit.add(self.lines, said, host, where)
        elif is_warning:
            if key[2] not in self._unknown and len(self._unknown) >= _MAX_WARNINGS:
                self.dropped += 1
                return None
            hit = self._unknown.setdefault(key[2], Hit(rule=_UNKNOWN, first=self.lines))
            hit.add(self.lines, "", host, where)
        return rule

    def forget(self, text: str) -> None:
        """Drop an unknown warning that turned out to be the beginning of one."""
        self._unknown.pop(_VARIES.sub("#", text[:MAX_TEXT]), None)

    def of(self, kind: Kind) -> list[Hit]:
        """Return what was found of that kind, roots first."""
        found = [
            hit
            for hit in self._hits.values()
            if hit.rule.kind == kind and not any(name in self._hits for name in hit.rule.unless)
        ]
        return sorted(found, key=lambda hit: self._order[hit.rule.name])

    def has(self, name: str) -> bool:
        """Whether a line was of the rule of that name."""
        return name in self._hits

    def unknown(self) -> list[Hit]:
        """Return the warnings that no rule knows, in their order."""
        return list(self._unknown.values())


def alike_line(failure: Failure) -> str:
    """Return what the further lines of a failure's rule say; empty where there are none."""
    if not failure.alike:
        return ""
    count = f"{failure.alike} more line{'s'[: failure.alike > 1]} of this kind"
    return f"{count}, such as: {failure.others[0].cause}" if failure.others else count


def _sentences(rule: Rule, groups: Mapping[str, str | None]) -> tuple[str, str]:
    groups = with_sums(groups)
    said = {key: value or _UNSAID.get(key, "?") for key, value in groups.items()}
    cause, fix = (_filled(text, groups).format_map(said) for text in (rule.cause, rule.fix))
    return cause, fix


def _filled(text: str, groups: Mapping[str, str | None]) -> str:
    """Leave out what stands in `[[ ]]` where one of its groups caught nothing."""

    def part(found: re.Match[str]) -> str:
        return found[1] if all(groups.get(name) for name in _GROUP.findall(found[1])) else ""

    return _OPTIONAL.sub(part, text)
