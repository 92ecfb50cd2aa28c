"""From everything that was seen to one answer: go, go-degraded or no-go, with names and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hpc_train.codec import Document
from hpc_train.plan.hostlist import folded
from hpc_train.preflight.checks.findings import ALL_NODES, Finding, severity
from hpc_train.preflight.checks.middle import median_low
from hpc_train.preflight.checks.pairs import PairResult
from hpc_train.preflight.choose.choose import Choice, Setting
from hpc_train.preflight.collective import CollectiveResult, check_collectives
from hpc_train.preflight.options import Policy, PreflightOptions

SCHEMA_VERSION = 1
Answer = Literal["go", "go-degraded", "no-go"]


@dataclass(frozen=True)
class Skipped:
    """A part of the preflight that did not run, and why. Not a pass."""

    part: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Verdict(Document):
    """The answer."""

    verdict: Answer  # `go`, `go-degraded` or `no-go`
    findings: tuple[Finding, ...] = ()  # worst first
    environment: tuple[Setting, ...] = ()  # for every rank
    # Node -> {name: value} where a node's value differs
    per_node: dict[str, dict[str, str]] = field(default_factory=dict)
    pairs: tuple[PairResult, ...] = ()  # what the pairs measured
    skipped: tuple[Skipped, ...] = ()  # what did not run
    bad_nodes: tuple[str, ...] = ()  # nodes with a failure: leave them out
    degraded_nodes: tuple[str, ...] = ()  # nodes with a warning: they work, and slow the others
    # The nodes to train on, in order; fewer than were checked where spares are left
    use_nodes: tuple[str, ...] = ()
    # Numeric address of each node on the chosen interface
    addresses: dict[str, str] = field(default_factory=dict)
    transport: str = "TCP"  # what a ring over the nodes should use
    rounds: int = 0  # rounds of pair tests
    seconds: float = 0.0  # from the coordinator's start to the verdict

    @property
    def checked_nothing(self) -> bool:
        """Whether the preflight broke before any node was checked."""
        return any(_is_all(item) for item in self.findings)

    @property
    def against(self) -> list[Finding]:
        """The findings that made it a no: the failures, or what the policy does not allow."""
        for level in ("fail", "warn", "unknown"):
            if found := [item for item in self.findings if item.level == level]:
                return found
        return []

    @property
    def summary(self) -> tuple[str, ...]:
        """One line for the answer, one for each finding that is not ok, and what was skipped."""
        return tuple(_summary(self))

    def to_json(self) -> dict[str, Any]:
        """Return the document of `hpc-train preflight --json` and preflight.json."""
        body = super().to_json()
        return {"schema_version": SCHEMA_VERSION, **body, "summary": list(self.summary)}


def decide(
    findings: Iterable[Finding],
    choice: Choice,
    *,
    nodes: list[str],
    policy: Policy,
    pairs: Iterable[PairResult] = (),
    skipped: Iterable[Skipped] = (),
    seconds: float = 0.0,
) -> Verdict:
    """Return the verdict over `nodes`; findings of others are told and do not count."""
    tests = tuple(pairs)
    verdict = Verdict(
        verdict="go",
        environment=choice.environment,
        per_node=choice.per_node,
        pairs=tests,
        skipped=tuple(skipped),
        use_nodes=tuple(nodes),
        addresses=choice.addresses,
        transport=choice.transport,
        rounds=max((pair.round for pair in tests), default=0),
        seconds=round(seconds, 3),
    )
    return _with(verdict, findings, policy)


def skipped_verdict(nodes: tuple[str, ...], reason: str) -> Verdict:
    """Return a `go` that says that nothing was checked."""
    return Verdict(verdict="go", skipped=(Skipped("everything", reason),), use_nodes=nodes)


def with_findings(verdict: Verdict, findings: Iterable[Finding], policy: Policy) -> Verdict:
    """Return the verdict with these findings beside its own."""
    return _with(verdict, [*verdict.findings, *findings], policy)


def _with(verdict: Verdict, findings: Iterable[Finding], policy: Policy) -> Verdict:
    said = sorted(findings, key=lambda item: -severity(item.level))
    counting = [item for item in said if item.node in (ALL_NODES, *verdict.use_nodes)]
    return replace(
        verdict,
        verdict=_answer(counting, policy),
        findings=tuple(said),
        bad_nodes=_named(said, "fail"),
        degraded_nodes=_named(said, "warn"),
    )


def _answer(findings: list[Finding], policy: Policy) -> Answer:
    levels = {finding.level for finding in findings}
    is_broken = any(item.check == "preflight" and item.level == "unknown" for item in findings)
    is_unchecked = any(_is_all(item) for item in findings)
    if (
        "fail" in levels
        or (is_broken and policy.on_broken == "no-go")
        or (is_unchecked and policy.on_unchecked == "no-go")
        or ("unknown" in levels and policy.on_unknown == "no-go")
    ):
        return "no-go"
    if is_unchecked:
        return "go-degraded"
    if "warn" in levels:
        return "go-degraded" if policy.on_degraded == "go" else "no-go"
    return "go"


def _is_all(finding: Finding) -> bool:
    """Whether it says that the whole preflight broke, not a part of it."""
    return finding.check == "preflight" and finding.part == "probe"


def _named(findings: list[Finding], level: str) -> tuple[str, ...]:
    names = [item.node for item in findings if item.level == level and item.node != ALL_NODES]
    return tuple(dict.fromkeys(names))


def with_collectives(
    verdict: Verdict,
    results: list[CollectiveResult],
    policy: Policy,
    *,
    nodes: Iterable[str] = (),
) -> Verdict:
    """Return the verdict with what the ranks' own all-reduce said.

    Of `nodes`, where the step ran, one that left no result is unknown.
    """
    silent = sorted(set(nodes) - {result.node for result in results})
    text = "it left no result of the collective"
    findings = [
        *verdict.findings,
        *check_collectives(results, verdict.transport),
        *(Finding(node, "collective", "collective", "unknown", text, _LOG) for node in silent),
    ]
    skipped = [item for item in verdict.skipped if not (results and item.part == "collective")]
    return _with(replace(verdict, skipped=tuple(skipped)), findings, policy)


_LOG = "read the step's log beside preflight.json"


def with_broken(verdict: Verdict, part: str, why: str, policy: Policy) -> Verdict:
    """Return the verdict where a later part of the preflight broke: the policy decides."""
    text = f"the {part} broke: {why}"
    finding = Finding(ALL_NODES, part, "preflight", "unknown", text, _LOG)
    return _with(with_skipped(verdict, part, why), [*verdict.findings, finding], policy)


def with_unreachable(
    verdict: Verdict, unreachable: Mapping[str, str], options: PreflightOptions
) -> Verdict:
    """Return the verdict with the nodes on which Slurm can start nothing, and srun's words.

    The options are of all nodes: too few that are left are a no-go.
    """
    fix = "is the node up, its cable in, its slurmd running? systemctl restart slurmd"
    findings = [
        Finding(node, "slurmd", "launch", "fail", f"Slurm cannot start anything on it: {why}", fix)
        for node, why in unreachable.items()
    ]
    enough = len(options.nodes) - len(unreachable) >= options.needed
    use = verdict.use_nodes if enough else options.nodes
    # That its probe never came follows from it.
    others = [f for f in verdict.findings if f.node not in unreachable or f.check != "rendezvous"]
    return _with(replace(verdict, use_nodes=use), [*findings, *others], options.policy)


def with_skipped(verdict: Verdict, part: str, why: str) -> Verdict:
    """Return the verdict with one more part that did not run."""
    return replace(verdict, skipped=(*verdict.skipped, Skipped(part, why)))


def together(findings: Iterable[Finding]) -> list[tuple[str, Finding]]:
    """Return each finding once, with the nodes that have it as a hostlist, in the given order."""
    nodes: dict[Finding, list[str]] = {}
    for finding in findings:
        nodes.setdefault(replace(finding, node=""), []).append(finding.node)
    return [
        ("all nodes" if ALL_NODES in names else folded(names), finding)
        for finding, names in nodes.items()
    ]


def _summary(verdict: Verdict) -> Iterator[str]:
    count, rounds = len(verdict.use_nodes), verdict.rounds
    nodes = f"{count} node{'s'[: count != 1]}"
    if verdict.checked_nothing:
        yield f"{verdict.verdict}: NOTHING WAS CHECKED on {nodes}"
    else:
        tests = f"{rounds} round{'s'[: rounds != 1]} of pairs, {verdict.seconds:.1f} s"
        yield f"{verdict.verdict}: {nodes} over {verdict.transport}, {tests}"
    for where, finding in together(verdict.findings):
        if finding.level != "ok":
            yield f"{finding.level}: {where} {told(finding)}"
    reasons: dict[str, list[str]] = {}
    for item in verdict.skipped:
        reasons.setdefault(item.reason, []).append(item.part)
    for reason, parts in reasons.items():
        yield f"skipped: {', '.join(parts)}: {reason}"


def measured(pairs: Iterable[PairResult]) -> list[str]:
    """Return what the pairs measured, as lines: the middle, and the pair at the slow end."""
    ended = [pair for pair in pairs if pair.error is None]
    speeds = sorted((pair.gbps, pair.a, pair.b) for pair in ended if pair.gbps is not None)
    trips = sorted((p.latency_us, p.a, p.b) for p in ended if p.latency_us is not None)
    lines = []
    if speeds:
        (slowest, a, b), middle = speeds[0], median_low([speed for speed, *_ in speeds])
        lines.append(f"bandwidth: {middle:.3g} Gbit/s; slowest {a} - {b} {slowest:.3g} Gbit/s")
    if trips:
        (longest, a, b), middle = trips[-1], median_low([trip for trip, *_ in trips])
        lines.append(f"round trip: {middle:.0f} us; longest {a} - {b} {longest:.0f} us")
    return lines


def told(finding: Finding) -> str:
    """Return a finding as a line without its node and level."""
    fix = f" -> {finding.fix}" if finding.fix else ""
    return f"{finding.part} {finding.check}: {finding.evidence}{fix}"
