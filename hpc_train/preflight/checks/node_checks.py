"""Checks over the inventories of all nodes, without any traffic: one pass whatever their number.

Each check yields findings for what is not right. One that yields nothing is reported as `ok` for
all nodes, and one that does not apply as skipped, so that silence never looks like a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hpc_train.plan.hostlist import folded
from hpc_train.preflight.checks import check_fabric, check_gpus
from hpc_train.preflight.checks.check_context import Context, Skip
from hpc_train.preflight.checks.findings import ALL_NODES, Finding, severity
from hpc_train.preflight.checks.middle import most_common
from hpc_train.preflight.choose.choose_hca import MEMLOCK_FIX
from hpc_train.preflight.inventory.inventory import Interface, NodeInventory

_MIB = 1024 * 1024
_TOLD = 8  # paths of a node that could not be read
Check = Callable[[Context], Iterator[Finding]]


@dataclass(frozen=True)
class CheckResults:
    """What the checks said, and which of them did not apply."""

    findings: tuple[Finding, ...] = ()  # at least one for each check that ran
    skipped: tuple[tuple[str, str], ...] = ()  # (check, why)


def run_checks(context: Context) -> CheckResults:
    """Run every check; one that breaks is `unknown`, and breaks no other."""
    findings: list[Finding] = []
    skipped: list[tuple[str, str]] = []
    ok = f"{len(context.nodes)} node{'s'[: len(context.nodes) > 1]}"
    for name, check in CHECKS.items():
        try:
            said = list(check(context))
        except Skip as reason:
            skipped.append((name, str(reason)))
            continue
        except Exception as error:  # noqa: BLE001 (a broken check must not stop a healthy job)
            text = f"the check itself broke: {type(error).__name__}: {error}"
            fix = "report it: this is a fault of hpc-train, not of the nodes"
            said = [Finding(ALL_NODES, "", name, "unknown", text, fix)]
        if name in HCA_CHECKS and not context.hcas_count:
            said = [replace(item, level="note") for item in said]
        if name in SITE_CHECKS:
            said = _of_the_site(said, context)
        findings.extend(said or [Finding(ALL_NODES, "", name, "ok", ok)])
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
    rest = [item for item in said if item not in wrong]
    evidence = f"on every node alike ({'; '.join(told)})"
    worst_one = max(wrong, key=lambda item: severity(item.level))
    return [replace(worst_one, node=ALL_NODES, evidence=evidence), *rest]


def check_readable(context: Context) -> Iterator[Finding]:
    """What could not be read is unknown on that node."""
    fix = "see the kernel's log, reload the driver"
    for node in context.nodes:
        for item in node.unreadable[:_TOLD]:
            text = f"cannot be read: {item.reason}"
            yield Finding(node.node, item.path, "readable", "unknown", text, fix)
        if len(node.unreadable) > _TOLD:
            text = f"{len(node.unreadable) - _TOLD} more paths cannot be read"
            yield Finding(node.node, "/sys", "readable", "unknown", text)


def check_memlock(context: Context) -> Iterator[Finding]:
    """An HCA pins its buffers: a low RLIMIT_MEMLOCK inside the step ends in ibv_reg_mr failing."""
    context.need_hcas()
    part = "RLIMIT_MEMLOCK"
    for node in context.nodes:
        limit = node.limits.memlock_bytes
        if limit is None:
            yield Finding(node.node, part, "memlock", "unknown", "cannot be read")
        elif node.hcas and limit != -1 and limit < context.thresholds.memlock_mib * _MIB:
            text = f"{limit / _MIB:g} MiB may be locked inside the step; ibv_reg_mr then says"
            text += " 'Cannot allocate memory'"
            yield Finding(node.node, part, "memlock", "fail", text, MEMLOCK_FIX)


def check_shm(context: Context) -> Iterator[Finding]:
    """Ranks of one node and data workers talk through /dev/shm."""
    warn, fail = context.thresholds.shm_warn_mib, context.thresholds.shm_fail_mib
    fix = "a container needs --ipc=host or --shm-size=8g; else mount -o remount,size=50%"
    for node in context.nodes:
        total = node.limits.shm_total_bytes
        if total is None:
            yield Finding(node.node, "/dev/shm", "shm", "unknown", "cannot be read")
        elif total < warn * _MIB:
            is_fatal = total <= fail * _MIB and len(node.gpus) > 1
            text = f"{total / _MIB:g} MiB; NCCL and data workers want {warn} MiB or more"
            yield Finding(node.node, "/dev/shm", "shm", "fail" if is_fatal else "warn", text, fix)


def check_interfaces(context: Context) -> Iterator[Finding]:
    """An interface that most nodes have up and this one has not."""
    context.need_several()
    count = len(context.nodes)
    up = {n.node: {item.name for item in n.interfaces if _leads_out(item)} for n in context.nodes}
    for node in context.nodes:
        if not up[node.node]:
            text, fix = "no interface is up with an address", _interface_fix("interfaces")
            yield Finding(node.node, "interfaces", "interface", "fail", text, fix)
            continue
        for name in sorted(set().union(*up.values()) - up[node.node]):
            having = sum(name in found for found in up.values())
            interface = node.interface(name)
            is_usual = 2 * having > count or having == count - 1
            if not is_usual or (interface is None and _has_alike(node, name, context)):
                continue
            what = "is not there"
            if interface is not None:
                what = "has no address" if interface.is_up else f"is {interface.state}"
            text = f"{what}; up on {having} of {count} nodes"
            yield Finding(node.node, name, "interface", "warn", text, _interface_fix(name))


def _leads_out(interface: Interface) -> bool:
    return interface.is_between_nodes and interface.is_ready


def _interface_fix(name: str) -> str:
    return f"ip link set {name} up; then look at the cable and the address"


def _has_alike(node: NodeInventory, name: str, context: Context) -> bool:
    """Return whether the node is in the subnet of that interface under another name."""
    alike = [other.interface(name) for other in context.nodes]
    there = {network for item in alike if item for network in item.networks}
    return any(there & item.networks for item in node.interfaces)


def check_mtu(context: Context) -> Iterator[Finding]:
    """Nodes that disagree on the frame size pass small messages and lose large ones."""
    yield from _differs(context, "mtu", lambda item: item.mtu, "bytes")


def check_speed(context: Context) -> Iterator[Finding]:
    """One slow link slows the whole ring."""
    yield from _differs(context, "speed", lambda item: item.speed_mbps, "Mbit/s")


def _differs(
    context: Context, check: str, value: Callable[[Interface], int | None], unit: str
) -> Iterator[Finding]:
    context.need_several()
    chosen = [(n, n.interface(context.choice.interfaces.get(n.node, ""))) for n in context.nodes]
    told = [
        (node.node, interface.name, number)
        for node, interface in chosen
        if interface is not None and (number := value(interface)) is not None
    ]
    numbers = [number for _, _, number in told]
    common = most_common(numbers)
    if common is None:
        raise Skip(f"no interface tells its {check}")
    for node_name, name, number in told:
        if number != common:
            text = f"{number} {unit}; {numbers.count(common)} of {len(numbers)} nodes have {common}"
            fix = f"give {name} the same {check} as on the other nodes"
            yield Finding(node_name, name, check, "warn", text, fix)


CHECKS: dict[str, Check] = {
    "readable": check_readable,
    "hca_set": check_fabric.check_hca_set,
    "port_state": check_fabric.check_port_state,
    "rate": check_fabric.check_rate,
    "link_layer": check_fabric.check_link_layer,
    "lid": check_fabric.check_lids,
    "gids": check_fabric.check_gids,
    "verbs": check_fabric.check_verbs,
    "memlock": check_memlock,
    "shm": check_shm,
    "interface": check_interfaces,
    "mtu": check_mtu,
    "speed": check_speed,
    "gpu_count": check_gpus.check_gpu_count,
    "gpu_model": check_gpus.check_gpu_model,
    "gpu_health": check_gpus.check_gpu_health,
    "gpu_busy": check_gpus.check_gpu_busy,
    "nvlink": check_gpus.check_nvlink,
    "gpudirect": check_gpus.check_gpudirect,
}

# Only NCCL over the HCAs needs these to be right.
HCA_CHECKS = frozenset(
    ("hca_set", "port_state", "rate", "link_layer", "lid", "gids", "verbs", "memlock", "gpudirect")
)
# How the site is set up rather than what a node suffers from, where every node has it.
SITE_CHECKS = frozenset(("lid", "gids", "shm"))
