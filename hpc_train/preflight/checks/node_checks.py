"""Checks over the inventories of all nodes, without any traffic: one pass whatever their number.

Each check yields findings for what is not right. One that yields nothing is reported as `ok` for
all nodes, and one that does not apply as skipped, so that silence never looks like a pass.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hpc_train.plan.hostlist import folded
from hpc_train.preflight.checks.check_context import Context, Skip
from hpc_train.preflight.checks.check_fabric import (
    check_gids,
    check_hca_set,
    check_lids,
    check_link_layer,
    check_port_state,
    check_rate,
    check_verbs,
)
from hpc_train.preflight.checks.check_gpus import (
    check_gpu_busy,
    check_gpu_count,
    check_gpu_health,
    check_gpu_model,
    check_gpudirect,
    check_nvlink,
)
from hpc_train.preflight.checks.findings import ALL_NODES, LEVELS, Finding, Level
from hpc_train.preflight.choose.choose_hca import MEMLOCK_FIX
from hpc_train.preflight.inventory.interfaces import USABLE_KINDS

if TYPE_CHECKING:
    from hpc_train.preflight.inventory.inventory import Interface, NodeInventory

__all__ = ["CHECKS", "CheckResults", "run_checks"]

_MIB = 1024 * 1024
Check = Callable[[Context], Iterator[Finding]]


@dataclass(frozen=True)
class CheckResults:
    """What the checks said, and which of them had nothing to look at.

    Attributes:
        findings: At least one for each check that ran.
        skipped: (check, why).
    """

    findings: tuple[Finding, ...] = ()
    skipped: tuple[tuple[str, str], ...] = field(default=())


def run_checks(context: Context) -> CheckResults:
    """Run every check; one that breaks is `unknown`, and breaks no other."""
    findings: list[Finding] = []
    skipped: list[tuple[str, str]] = []
    for name, check in CHECKS.items():
        try:
            said = list(check(context))
        except Skip as reason:
            skipped.append((name, str(reason)))
            continue
        except Exception as error:  # noqa: BLE001 (a broken check must not stop a healthy job)
            said = [_broken(name, error)]
        if name in HCA_CHECKS and not context.hcas_count:
            said = [replace(item, level="note") for item in said]
        if name in SITE_CHECKS:
            said = _of_the_site(said, context)
        findings.extend(said or [_ok(name, len(context.nodes))])
    return CheckResults(tuple(findings), tuple(skipped))


def _of_the_site(said: list[Finding], context: Context) -> list[Finding]:
    """One finding about all nodes where each of several has it: that is nobody's own fault."""
    wrong = [item for item in said if item.level in ("warn", "fail")]
    if len(context.nodes) < 2 or {item.node for item in wrong} != {n.node for n in context.nodes}:
        return said
    by_evidence: dict[str, list[str]] = {}
    for item in wrong:
        by_evidence.setdefault(item.evidence, []).append(item.node)
    told = [f"{folded(list(dict.fromkeys(names)))}: {text}" for text, names in by_evidence.items()]
    worst_one = max(wrong, key=lambda item: LEVELS.index(item.level))
    rest = [item for item in said if item not in wrong]
    evidence = f"on every node alike ({'; '.join(told)})"
    return [replace(worst_one, node=ALL_NODES, evidence=evidence), *rest]


def _ok(name: str, count: int) -> Finding:
    evidence = f"{count} node{'s'[: count > 1]}"
    return Finding(node=ALL_NODES, part="", check=name, level="ok", evidence=evidence)


def _broken(name: str, error: Exception) -> Finding:
    return Finding(
        node=ALL_NODES,
        part="",
        check=name,
        level="unknown",
        evidence=f"the check itself broke: {type(error).__name__}: {error}",
        fix="report it: this is a fault of hpc-train, not of the nodes",
    )


def check_readable(context: Context) -> Iterator[Finding]:
    """What could not be read is unknown on that node."""
    for node in context.nodes:
        for item in node.unreadable[:8]:
            yield Finding(
                node=node.node,
                part=item.path,
                check="readable",
                level="unknown",
                evidence=f"cannot be read: {item.reason}",
                fix="see the kernel's log, reload the driver",
            )
        if len(node.unreadable) > 8:
            yield Finding(
                node=node.node,
                part="/sys",
                check="readable",
                level="unknown",
                evidence=f"{len(node.unreadable) - 8} more paths cannot be read",
            )


def check_memlock(context: Context) -> Iterator[Finding]:
    """An HCA pins its buffers: a low RLIMIT_MEMLOCK inside the step ends in ibv_reg_mr failing."""
    context.need_hcas()
    least = context.thresholds.memlock_mib
    for node in context.nodes:
        limit = node.limits.memlock_bytes
        if limit is None:
            yield _unread(node, "memlock", "RLIMIT_MEMLOCK")
        elif node.hcas and limit != -1 and limit < least * _MIB:
            yield Finding(
                node=node.node,
                part="RLIMIT_MEMLOCK",
                check="memlock",
                level="fail",
                evidence=f"{limit / _MIB:g} MiB may be locked inside the step; ibv_reg_mr then says"
                " 'Cannot allocate memory'",
                fix=MEMLOCK_FIX,
            )


def check_shm(context: Context) -> Iterator[Finding]:
    """Ranks of one node and data workers talk through /dev/shm."""
    for node in context.nodes:
        total = node.limits.shm_total_bytes
        if total is None:
            yield _unread(node, "shm", "/dev/shm")
            continue
        warn, fail = context.thresholds.shm_warn_mib, context.thresholds.shm_fail_mib
        if total < warn * _MIB:
            is_fatal = total <= fail * _MIB and len(node.gpus) > 1
            yield Finding(
                node=node.node,
                part="/dev/shm",
                check="shm",
                level="fail" if is_fatal else "warn",
                evidence=f"{total / _MIB:g} MiB; NCCL and data workers want {warn} MiB or more",
                fix="a container needs --ipc=host or --shm-size=8g; else mount -o remount,size=50%",
            )


def _unread(node: NodeInventory, check: str, part: str) -> Finding:
    return Finding(
        node=node.node, part=part, check=check, level="unknown", evidence="cannot be read"
    )


def check_interfaces(context: Context) -> Iterator[Finding]:
    """An interface that most nodes have up and this one has not."""
    context.need_several()
    up = {node.node: _up(node) for node in context.nodes}
    names = {name for found in up.values() for name in found}
    for node in context.nodes:
        if not up[node.node]:
            yield _interface(node, "interfaces", "fail", "no interface is up with an address")
            continue
        for name in sorted(names - up[node.node]):
            having = sum(name in found for found in up.values())
            if 2 * having <= len(context.nodes) and having < len(context.nodes) - 1:
                continue
            interface = node.interface(name)
            if interface is None and _has_alike(node, name, context):
                continue
            what = f"is {interface.state}" if interface else "is not there"
            if interface is not None and interface.state in ("up", "unknown"):
                what = "has no address"
            evidence = f"{what}; up on {having} of {len(context.nodes)} nodes"
            yield _interface(node, name, "warn", evidence)


def _up(node: NodeInventory) -> set[str]:
    return {
        item.name
        for item in node.interfaces
        if item.kind in USABLE_KINDS and item.state in ("up", "unknown") and item.ipv4 + item.ipv6
    }


def _has_alike(node: NodeInventory, name: str, context: Context) -> bool:
    """Return whether the node is in the subnet of that interface under another name."""
    there = {
        network
        for other in context.nodes
        if (interface := other.interface(name)) is not None
        for network in _networks(interface)
    }
    return any(there & _networks(item) for item in node.interfaces)


def _networks(interface: Interface) -> set[str]:
    return {str(ipaddress.ip_interface(text).network) for text in interface.ipv4 + interface.ipv6}


def _interface(node: NodeInventory, part: str, level: Level, evidence: str) -> Finding:
    return Finding(
        node=node.node,
        part=part,
        check="interface",
        level=level,
        evidence=evidence,
        fix=f"ip link set {part} up; then look at the cable and the address",
    )


def check_mtu(context: Context) -> Iterator[Finding]:
    """Nodes that disagree on the frame size pass small messages and lose large ones."""
    yield from _differs(context, "mtu", lambda item: item.mtu, "bytes")


def check_speed(context: Context) -> Iterator[Finding]:
    """One slow link slows the whole ring."""
    yield from _differs(context, "speed", lambda item: item.speed_mbps, "Mbit/s")


def _differs(
    context: Context, check: str, value: Callable[..., int | None], unit: str
) -> Iterator[Finding]:
    context.need_several()
    values = {}
    for node in context.nodes:
        interface = node.interface(context.choice.interfaces.get(node.node, ""))
        number = value(interface) if interface is not None else None
        if number is not None:
            values[node.node] = (interface.name if interface else "", number)
    numbers = [number for _, number in values.values()]
    if not numbers:
        raise Skip(f"no interface tells its {check}")
    # Ties go to the larger number: the odd one out is the one that offers less.
    common = max(set(numbers), key=lambda number: (numbers.count(number), number))
    for node_name, (name, number) in values.items():
        if number != common:
            yield Finding(
                node=node_name,
                part=name,
                check=check,
                level="warn",
                evidence=f"{number} {unit}; {numbers.count(common)} of {len(numbers)} nodes have"
                f" {common}",
                fix=f"give {name} the same {check} as on the other nodes",
            )


CHECKS: dict[str, Check] = {
    "readable": check_readable,
    "hca_set": check_hca_set,
    "port_state": check_port_state,
    "rate": check_rate,
    "link_layer": check_link_layer,
    "lid": check_lids,
    "gids": check_gids,
    "verbs": check_verbs,
    "memlock": check_memlock,
    "shm": check_shm,
    "interface": check_interfaces,
    "mtu": check_mtu,
    "speed": check_speed,
    "gpu_count": check_gpu_count,
    "gpu_model": check_gpu_model,
    "gpu_health": check_gpu_health,
    "gpu_busy": check_gpu_busy,
    "nvlink": check_nvlink,
    "gpudirect": check_gpudirect,
}

# Only NCCL over the HCAs needs these to be right.
HCA_CHECKS = frozenset(
    ("hca_set", "port_state", "rate", "link_layer", "lid", "gids", "verbs", "memlock", "gpudirect")
)
# How the site is set up rather than what a node suffers from, where every node has it.
SITE_CHECKS = frozenset(("lid", "gids", "shm"))
