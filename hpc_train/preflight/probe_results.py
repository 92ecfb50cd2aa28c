"""What the nodes found out together, and the one place where everything becomes a verdict."""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hpc_train.preflight.checks.check_context import Context
from hpc_train.preflight.checks.findings import ALL_NODES, Finding, Level
from hpc_train.preflight.checks.medians import median_low
from hpc_train.preflight.checks.node_checks import run_checks
from hpc_train.preflight.checks.pairs import PairResult, conclude
from hpc_train.preflight.verdict import Skipped, Verdict, decide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpc_train.preflight.inventory.inventory import NodeInventory
    from hpc_train.preflight.options import PreflightOptions

__all__ = ["Lost", "ProbeResults", "assemble"]


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A node that is not, or no longer, with us.

    Attributes:
        node: Its name.
        check: `rendezvous` (never came), `alive` (came and went) or `protocol` (answers garbage).
        reason: What was seen.
        fix: What to do.
    """

    node: str
    check: str
    reason: str
    fix: str = "ssh to the node: is it up, does python start there; drain it"


@dataclass(frozen=True, kw_only=True)
class ProbeResults:
    """What came out of the nodes' meeting.

    Attributes:
        lost: Nodes that are not with us.
        pairs: What the pairs measured.
        clocks: node -> (offset to the coordinator in s, bound on its error in s).
        counters: node -> {`mlx5_0:1/symbol_error`: change during the test}.
        strangers: (address, what it did, times) of connections without the token.
        skipped: What did not run.
        seconds: From the coordinator's start.
    """

    lost: tuple[Lost, ...] = ()
    pairs: tuple[PairResult, ...] = ()
    clocks: dict[str, tuple[float, float]] = field(default_factory=dict)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    strangers: tuple[tuple[str, str, int], ...] = ()
    skipped: tuple[Skipped, ...] = ()
    seconds: float = 0.0


def assemble(nodes: list[NodeInventory], trial: ProbeResults, options: PreflightOptions) -> Verdict:
    """Return the verdict over what was looked at and tried.

    Bad nodes are left out where enough others remain (`options.wanted`): then the choice is made
    again, for the nodes that are used.

    Args:
        nodes: Inventories of the nodes that answered, at least one.
        trial: What they found out together.
        options: What was asked for.
    """
    context, findings, skipped = _alone(nodes, options)
    together = list(_together(nodes, trial, options))
    if not context.hcas_count:
        together = [
            replace(item, level="note") if item.check == "counters" else item for item in together
        ]
    use, out = _select(options, [*findings, *together])
    if out:
        kept = [node for node in nodes if node.node in use]
        about_others = [item for item in findings if item.node in out]
        context, findings, skipped = _alone(kept, options)
        findings = [*about_others, *findings]
    return decide(
        [*findings, *together],
        context.choice,
        nodes=use,
        policy=options.policy,
        pairs=trial.pairs,
        skipped=[*skipped, *trial.skipped],
        excluded=out,
        seconds=trial.seconds,
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


def _select(options: PreflightOptions, findings: list[Finding]) -> tuple[list[str], list[str]]:
    """Return (nodes to use, nodes to leave out); all and none where too few are good."""
    nodes = list(options.nodes)
    wanted = options.wanted or len(nodes)
    bad = {item.node for item in findings if item.level == "fail"}
    slow = {item.node for item in findings if item.level == "warn"}
    good = [node for node in nodes if node not in bad]
    if len(good) < wanted or wanted == len(nodes):
        return nodes, []
    best = sorted(good, key=lambda node: (node in slow, nodes.index(node)))[:wanted]
    return [node for node in nodes if node in best], [node for node in nodes if node not in best]


def _together(
    nodes: list[NodeInventory], trial: ProbeResults, options: PreflightOptions
) -> Iterator[Finding]:
    for lost in trial.lost:
        yield Finding(
            node=lost.node, part="probe", check=lost.check, level="fail",
            evidence=lost.reason, fix=lost.fix,
        )  # fmt: skip
    for address, what, times in trial.strangers:
        yield Finding(
            node=ALL_NODES, part=address, check="stranger", level="note",
            evidence=f"{times} connection{'s'[: times > 1]} dropped: {what}",
            fix="a port scanner, or a probe of another run",
        )  # fmt: skip
    if len(options.nodes) > 1:
        yield from _names(nodes, options)
        yield from _clocks(trial, options)
        yield from _pairs(nodes, trial, options)
    yield from _counters(trial, options)


def _pairs(
    nodes: list[NodeInventory], trial: ProbeResults, options: PreflightOptions
) -> Iterator[Finding]:
    if not trial.pairs:
        return
    gone = {lost.node for lost in trial.lost}
    alive = [node.node for node in nodes if node.node not in gone]
    said = conclude(alive, list(trial.pairs), options.thresholds)
    tried = {name for pair in trial.pairs if not pair.is_aborted for name in (pair.a, pair.b)}
    for node in alive:
        if node not in tried:
            yield _pair(node, "unknown", "it was tested with no other node")
    if said:
        yield from said
    elif tried:
        yield _pair(ALL_NODES, "ok", f"{len(trial.pairs)} pairs")


def _pair(node: str, level: Level, evidence: str) -> Finding:
    return Finding(node=node, part="network", check="pair", level=level, evidence=evidence)


def _names(nodes: list[NodeInventory], options: PreflightOptions) -> Iterator[Finding]:
    """Yield where the master's name means nothing, itself, or another machine."""
    if options.is_local or not options.master:
        return
    answers = {node.node: node.resolution for node in nodes if node.resolution is not None}
    routable = [_routable(answer.addresses) for answer in answers.values()]
    common = Counter(address for found in routable for address in found)
    for name, answer in answers.items():
        mine = _routable(answer.addresses)
        if answer.error is not None:
            yield _name(name, options, "fail", answer.error)
        elif not mine:
            is_own = name == options.nodes[0]
            # 127.0.1.1 for a node's own name is Debian's default, and harms nobody else.
            level: Level = "note" if is_own and "127.0.0.1" not in answer.addresses else "fail"
            text = f"resolves to {', '.join(answer.addresses)}: gloo and torch would dial this node"
            yield _name(name, options, "warn" if is_own and level == "fail" else level, text)
        elif name != options.nodes[0] and len(mine) < len(answer.addresses):
            text = f"resolves to {', '.join(answer.addresses)}: gloo may dial this node itself"
            yield _name(name, options, "warn", text)
        elif common and not mine & {common.most_common(1)[0][0]} and _most(common, len(answers)):
            text = f"resolves to {', '.join(sorted(mine))}; the others say"
            yield _name(name, options, "warn", f"{text} {common.most_common(1)[0][0]}")
        elif answer.seconds > 1.0:
            yield _name(name, options, "note", f"the resolver took {answer.seconds:.1f} s")


def _most(common: Counter[str], count: int) -> bool:
    return 2 * common.most_common(1)[0][1] > count


def _routable(addresses: tuple[str, ...]) -> set[str]:
    return {text for text in addresses if not ipaddress.ip_address(text).is_loopback}


def _name(node: str, options: PreflightOptions, level: Level, evidence: str) -> Finding:
    return Finding(
        node=node, part=options.master, check="master_name", level=level, evidence=evidence,
        fix=f"correct {options.master} in /etc/hosts or the DNS of that node",
    )  # fmt: skip


def _clocks(trial: ProbeResults, options: PreflightOptions) -> Iterator[Finding]:
    """Yield clocks that are off the median; the spread is an upper bound by the round trips."""
    if len(trial.clocks) < 2:
        return
    limit = options.thresholds.clock_warn_s
    middle = median_low(sorted(offset for offset, _ in trial.clocks.values()))
    off = {
        node: (offset - middle, bound)
        for node, (offset, bound) in trial.clocks.items()
        if abs(offset - middle) - bound > limit
    }
    fix = "chronyc tracking; start chronyd on that node"
    if len(trial.clocks) == 2 and off:
        (seconds, _) = next(iter(off.values()))
        text = f"the two clocks are {abs(seconds):.1f} s apart; which one is wrong cannot be told"
        yield Finding(
            node=ALL_NODES, part="clock", check="clock", level="warn", evidence=text, fix=fix
        )
        return
    for node, (seconds, bound) in off.items():
        text = f"{seconds:+.1f} s (+-{bound:.2g} s) against the median of {len(trial.clocks)} nodes"
        yield Finding(node=node, part="clock", check="clock", level="warn", evidence=text, fix=fix)
    if not off:
        spread = max(abs(offset - middle) + bound for offset, bound in trial.clocks.values())
        yield Finding(
            node=ALL_NODES, part="clock", check="clock", level="ok",
            evidence=f"within {spread:.2g} s of the median",
        )  # fmt: skip


def _counters(trial: ProbeResults, options: PreflightOptions) -> Iterator[Finding]:
    """Yield link errors counted during the test; their value since boot says nothing."""
    for node, counters in trial.counters.items():
        for name, change in counters.items():
            if change <= 0:
                continue
            level: Level = "warn" if change >= options.thresholds.counter_warn else "note"
            port, _, counter = name.partition("/")
            yield Finding(
                node=node, part=port, check="counters", level=level,
                evidence=f"{counter} rose by {change} during the test",
                fix="check the cable and the switch port (perfquery, ibqueryerrors)",
            )  # fmt: skip
