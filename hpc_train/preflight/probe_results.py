"""What the nodes found out together, and the one place where everything becomes a verdict."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from hpc_train.preflight.checks.check_context import Context
from hpc_train.preflight.checks.findings import ALL_NODES, Finding, Level
from hpc_train.preflight.checks.middle import median_low
from hpc_train.preflight.checks.node_checks import run_checks
from hpc_train.preflight.checks.pairs import PairResult, conclude
from hpc_train.preflight.inventory.inventory import NodeInventory, Resolution
from hpc_train.preflight.options import PreflightOptions
from hpc_train.preflight.verdict import Skipped, Verdict, decide


@dataclass(frozen=True, kw_only=True)
class ProbeResults:
    """What came out of the tests between the nodes."""

    lost: tuple[Finding, ...] = ()  # nodes that are not connected, see `lost_node`
    pairs: tuple[PairResult, ...] = ()  # what the pairs measured
    # Node -> (offset to the coordinator in s, bound on its error in s)
    clocks: dict[str, tuple[float, float]] = field(default_factory=dict)
    # Node -> {`mlx5_0:1/symbol_error`: change during the test}
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    # (address, what it did, times) of connections without the token
    strangers: tuple[tuple[str, str, int], ...] = ()
    skipped: tuple[Skipped, ...] = ()  # what did not run
    seconds: float = 0.0  # from the coordinator's start


def lost_node(node: str, check: str, reason: str, fix: str = "") -> Finding:
    """Return the finding about a node whose probe is not, or no longer, connected.

    Its check is `rendezvous` (never came), `alive` (came and went) or `protocol` (sends garbage).
    """
    fix = fix or "ssh to the node: is it up, does python start there; drain it"
    return Finding(node, "probe", check, "fail", reason, fix)


def inventory_of(folder: Path, node: str) -> NodeInventory | None:
    """Return the inventory that a node has left in the run's folder, None without one."""
    try:
        return NodeInventory.read(folder / f"look-{node}.json")
    except (OSError, ValueError):
        return None


def assemble(
    nodes: list[NodeInventory], results: ProbeResults, options: PreflightOptions
) -> Verdict:
    """Return the verdict over the inventories and the tests.

    Bad nodes are left out where enough others remain (`options.wanted`): then the choice is made
    again, for the nodes that are used. `nodes` are those that answered, at least one.
    """
    context, findings, skipped = _alone(nodes, options)
    together = list(_together(nodes, results, options))
    if not context.hcas_count:
        together = [
            replace(item, level="note") if item.check == "counters" else item for item in together
        ]
    use = _select(options, [*findings, *together])
    if len(use) < len(options.nodes):
        about_others = [item for item in findings if item.node not in (ALL_NODES, *use)]
        context, findings, skipped = _alone([node for node in nodes if node.node in use], options)
        findings = [*about_others, *findings]
    return decide(
        [*findings, *together],
        context.choice,
        nodes=use,
        policy=options.policy,
        pairs=results.pairs,
        skipped=[*skipped, *results.skipped],
        seconds=results.seconds,
    )


def _alone(
    nodes: list[NodeInventory], options: PreflightOptions
) -> tuple[Context, list[Finding], list[Skipped]]:
    context = Context.of(
        nodes,
        options.user_env,
        profile=options.profile,
        thresholds=options.thresholds,
        is_nccl=options.is_nccl,
    )
    results = run_checks(context)
    # What InfiniBand cannot do costs nothing where the ranks do not use it.
    said = [
        item for item in context.choice.findings if options.is_nccl or item.check != "transport"
    ]
    skipped = [Skipped(check, reason) for check, reason in results.skipped]
    return context, [*results.findings, *said], skipped


def _select(options: PreflightOptions, findings: list[Finding]) -> list[str]:
    """Return the nodes to use, all where too few are good."""
    nodes = list(options.nodes)
    bad = {item.node for item in findings if item.level == "fail"}
    slow = {item.node for item in findings if item.level == "warn"}
    good = [node for node in nodes if node not in bad]
    if len(good) < options.needed:
        return nodes
    best = sorted(good, key=lambda node: node in slow)[: options.needed]
    return [node for node in nodes if node in best]


def _together(
    nodes: list[NodeInventory], results: ProbeResults, options: PreflightOptions
) -> Iterator[Finding]:
    yield from results.lost
    for address, what, times in results.strangers:
        text = f"{times} connection{'s'[: times > 1]} dropped: {what}"
        fix = "a port scanner, or a probe of another run"
        yield Finding(ALL_NODES, address, "stranger", "note", text, fix)
    if len(options.nodes) > 1:
        if not (options.is_local or options.by_address):
            yield from _names(nodes, options)
        if len(results.clocks) > 1:
            yield from _clocks(results, options)
        if results.pairs:
            yield from _pairs(nodes, results, options)
    yield from _counters(results, options)


def _pairs(
    nodes: list[NodeInventory], results: ProbeResults, options: PreflightOptions
) -> Iterator[Finding]:
    gone = {lost.node for lost in results.lost}
    alive = [node.node for node in nodes if node.node not in gone]
    said = conclude(alive, list(results.pairs), options.thresholds)
    tried = {name for pair in results.pairs if not pair.is_aborted for name in (pair.a, pair.b)}
    for node in alive:
        if node not in tried:
            yield Finding(node, "network", "pair", "unknown", "it was tested with no other node")
    if tried and not said:
        yield Finding(ALL_NODES, "network", "pair", "ok", f"{len(results.pairs)} pairs")
    yield from said


def _names(nodes: list[NodeInventory], options: PreflightOptions) -> Iterator[Finding]:
    """Yield where the master's name means nothing, itself, or another machine."""
    answers = {node.node: node.resolution for node in nodes if node.resolution is not None}
    counts = Counter(address for answer in answers.values() for address in _routable(answer))
    top = counts.most_common(1)
    common = top[0][0] if top and 2 * top[0][1] > len(answers) else ""
    fix = f"correct {options.nodes[0]} in /etc/hosts or the DNS of that node"
    for node, answer in answers.items():
        said = _misnamed(answer, common, is_own=node == options.nodes[0])
        if said is not None:
            yield Finding(node, options.nodes[0], "master_name", *said, fix)


def _misnamed(answer: Resolution, common: str, *, is_own: bool) -> tuple[Level, str] | None:
    """Return what is wrong with the name's meaning on one node; `is_own` is the name's own node."""
    mine = _routable(answer)
    means = f"resolves to {', '.join(answer.addresses)}"
    if answer.error is not None:
        return "fail", answer.error
    if not mine:
        # 127.0.1.1 for a node's own name is Debian's default, and harms nobody else.
        own: Level = "warn" if "127.0.0.1" in answer.addresses else "note"
        return own if is_own else "fail", f"{means}: gloo and torch would dial this node"
    if not is_own and len(mine) < len(answer.addresses):
        return "warn", f"{means}: gloo may dial this node itself"
    if common and common not in mine:
        return "warn", f"resolves to {', '.join(sorted(mine))}; the others say {common}"
    if answer.seconds > 1.0:
        return "note", f"the resolver took {answer.seconds:.1f} s"
    return None


def _routable(answer: Resolution) -> set[str]:
    return {text for text in answer.addresses if not ipaddress.ip_address(text).is_loopback}


def _clocks(results: ProbeResults, options: PreflightOptions) -> Iterator[Finding]:
    """Yield clocks that are off the median; the spread is an upper bound by the round trips."""
    count = len(results.clocks)
    middle = median_low([offset for offset, _ in results.clocks.values()])
    away = {node: (offset - middle, bound) for node, (offset, bound) in results.clocks.items()}
    limit = options.thresholds.clock_warn_s
    off = {node: item for node, item in away.items() if abs(item[0]) - item[1] > limit}
    fix = "chronyc tracking; start chronyd on that node"
    if not off:
        spread = max(abs(seconds) + bound for seconds, bound in away.values())
        yield Finding(ALL_NODES, "clock", "clock", "ok", f"within {spread:.2g} s of the median")
    elif count == 2:
        ((seconds, _),) = off.values()
        text = f"the two clocks are {abs(seconds):.1f} s apart; which one is wrong cannot be told"
        yield Finding(ALL_NODES, "clock", "clock", "warn", text, fix)
    else:
        for node, (seconds, bound) in off.items():
            text = f"{seconds:+.1f} s (+-{bound:.2g} s) against the median of {count} nodes"
            yield Finding(node, "clock", "clock", "warn", text, fix)


def _counters(results: ProbeResults, options: PreflightOptions) -> Iterator[Finding]:
    """Yield link errors counted during the test; their value since boot says nothing."""
    fix = "check the cable and the switch port (perfquery, ibqueryerrors)"
    for node, counters in results.counters.items():
        for name, change in counters.items():
            if change > 0:
                level: Level = "warn" if change >= options.thresholds.counter_warn else "note"
                port, _, counter = name.partition("/")
                text = f"{counter} rose by {change} during the test"
                yield Finding(node, port, "counters", level, text, fix)
