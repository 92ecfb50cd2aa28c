"""Checks of the HCAs: each node against the majority of the others.

What is dead everywhere is the site's layout or the whole fabric, and names nobody; what is dead
here and alive elsewhere is this node's fault.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hpc_train.preflight.checks.check_context import Context, Skip
from hpc_train.preflight.checks.findings import Finding, Level
from hpc_train.preflight.choose.choose_hca import PortName, gid_indices, ports_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpc_train.preflight.inventory.inventory import NodeInventory, Port

__all__ = [
    "check_gids",
    "check_hca_set",
    "check_lids",
    "check_link_layer",
    "check_port_state",
    "check_rate",
    "check_verbs",
]

_CABLE = "check the cable and the switch port (ibstat, iblinkinfo)"
_PHYSICAL_FIX = {
    "Disabled": "it is switched off on purpose: ibportstate ... enable, or leave it out",
    "Sleep": "it is switched off on purpose: ibportstate ... enable, or leave it out",
    "Polling": f"no signal: {_CABLE}",
    "LinkUp": "the link is up and no subnet manager answers: sminfo, restart opensm",
}


def _label(key: PortName) -> str:
    return f"{key[0]}:{key[1]}"


def check_hca_set(context: Context) -> Iterator[Finding]:
    """HCAs that most nodes have and this one lacks, or the other way round."""
    context.need_hcas()
    context.need_several()
    compute = set(context.hcas.compute)
    common = _common(context)
    for node in context.nodes:
        missing = sorted(compute - set(ports_of(node)))
        if missing and not _has_as_many(node, context):
            left = len(compute) - len(missing)
            yield Finding(
                node=node.node,
                part=", ".join(_label(key) for key in missing[:4]),
                check="hca_set",
                level=_by_share(left, len(compute), context),
                evidence=f"{'no HCA at all' if not node.hcas else 'not there'}; the other nodes"
                f" have {len(compute)} ports for training, this one {left}",
                fix="lspci | grep Mellanox; dmesg | grep mlx5; reseat or replace the card",
            )
        for key in sorted(set(ports_of(node)) - common):
            if not missing:
                yield Finding(
                    node=node.node,
                    part=_label(key),
                    check="hca_set",
                    level="note",
                    evidence="only some nodes have it; it is left out on all",
                )


def _common(context: Context) -> set[PortName]:
    """Return the ports that at least half of the nodes have."""
    counts = Counter(key for node in context.nodes for key in ports_of(node))
    return {key for key, count in counts.items() if 2 * count >= len(context.nodes)}


def _has_as_many(node: NodeInventory, context: Context) -> bool:
    """Return whether the node has the same number of live ports under other names."""
    alive = [
        port
        for port in ports_of(node).values()
        if port.is_active and port.link_layer == context.hcas.link_layer
    ]
    return len(alive) >= len(context.hcas.compute)


def _by_share(left: int, whole: int, context: Context) -> Level:
    """A node that keeps most of its ports slows the others; one that loses most fails."""
    return "warn" if whole and left and left / whole >= context.thresholds.hca_share else "fail"


def check_port_state(context: Context) -> Iterator[Finding]:
    """Ports that are not ACTIVE: NCCL drops them silently."""
    context.need_hcas()
    compute = set(context.hcas.compute)
    for node in context.nodes:
        ports = ports_of(node)
        alive = [key for key, port in ports.items() if port.is_active and key in compute]
        for key, port in ports.items():
            if port.state is None:
                yield _state(node, key, port, "unknown", "its state cannot be read")
            elif not port.is_active:
                yield _dead(context, node, key, port, len(alive))


def _dead(
    context: Context, node: NodeInventory, key: PortName, port: Port, alive_here: int
) -> Finding:
    seen = [other for other in context.nodes if key in ports_of(other)]
    active = sum(1 for other in seen if ports_of(other)[key].is_active)
    if key not in context.hcas.compute or len(context.nodes) == 1 or active == 0:
        return _state(node, key, port, "note", f"ACTIVE on {active} of {len(seen)} nodes")
    level = _by_share(alive_here, len(context.hcas.compute), context)
    evidence = f"ACTIVE on {active} of {len(seen)} nodes; NCCL would drop it silently"
    return _state(node, key, port, level, evidence)


def _state(node: NodeInventory, key: PortName, port: Port, level: Level, text: str) -> Finding:
    state, phys = port.state or "unknown", port.phys_state or "unknown"
    return Finding(
        node=node.node,
        part=_label(key),
        check="port_state",
        level=level,
        evidence=f"state {state}, physical {phys}; {text}",
        fix=_PHYSICAL_FIX.get(phys, _CABLE),
    )


def check_rate(context: Context) -> Iterator[Finding]:
    """One port that trained down to a lower rate slows every ring through it."""
    context.need_hcas()
    context.need_several()
    for key in context.hcas.compute:
        rates = {
            node.node: port.rate_gbps
            for node in context.nodes
            if (port := ports_of(node).get(key)) is not None and port.is_active
        }
        known = [rate for rate in rates.values() if rate is not None]
        if not known:
            continue
        common = max(set(known), key=lambda rate: (known.count(rate), rate))
        for node_name, rate in rates.items():
            if rate is None or rate >= common:
                continue
            share = rate / common
            yield Finding(
                node=node_name,
                part=_label(key),
                check="rate",
                level="warn" if share >= context.thresholds.hca_share else "fail",
                evidence=f"{rate:g} Gbit/s, {share:.0%} of the {common:g} of"
                f" {known.count(common)} of {len(known)} nodes",
                fix=f"the link trained down: {_CABLE}",
            )


def check_link_layer(context: Context) -> Iterator[Finding]:
    """HCAs of one name and two link layers cannot connect to each other."""
    context.need_hcas()
    for key in context.hcas.compute:
        for node in context.nodes:
            port = ports_of(node).get(key)
            if port and port.link_layer and port.link_layer != context.hcas.link_layer:
                yield Finding(
                    node=node.node,
                    part=_label(key),
                    check="link_layer",
                    level="fail",
                    evidence=f"{port.link_layer}; the others have {context.hcas.link_layer}",
                    fix="mlxconfig -d DEV set LINK_TYPE_P1=... and reboot the node",
                )


def check_lids(context: Context) -> Iterator[Finding]:
    """An InfiniBand port without a LID, or without a subnet manager, carries nothing."""
    context.need_hcas()
    if context.hcas.link_layer != "InfiniBand":
        raise Skip("RoCE has no LIDs")
    for node in context.nodes:
        for key, port in ports_of(node).items():
            if not port.is_active or port.link_layer != "InfiniBand":
                continue
            missing = [name for name in ("lid", "sm_lid") if getattr(port, name) == 0]
            if missing:
                yield Finding(
                    node=node.node,
                    part=_label(key),
                    check="lid",
                    level="fail",
                    evidence=f"ACTIVE with {' and '.join(missing)} 0",
                    fix="sminfo; restart the subnet manager",
                )


def check_gids(context: Context) -> Iterator[Finding]:
    """A RoCE port needs a routable RoCE v2 GID; on InfiniBand a link-local one is normal."""
    context.need_hcas()
    if context.hcas.link_layer != "Ethernet":
        raise Skip("matters on RoCE alone")
    for node in context.nodes:
        for key in context.hcas.ports.get(node.node, ()):
            if None in gid_indices(node, (key,)):
                yield Finding(
                    node=node.node,
                    part=_label(key),
                    check="gids",
                    level="fail",
                    evidence="no routable RoCE v2 GID: ibv_modify_qp will time out",
                    fix="give its interface an address; cma_roce_mode -d DEV -m 2",
                )


def check_verbs(context: Context) -> Iterator[Finding]:
    """HCAs that no process here can open: NCCL falls back to TCP and says nothing."""
    context.need_hcas()
    for node in context.nodes:
        if said := _unreachable(node):
            why, fix = said
            yield Finding(
                node=node.node,
                part="verbs",
                check="verbs",
                level="fail",
                evidence=f"{why}: NCCL falls back to TCP without a word",
                fix=fix,
            )


def _unreachable(node: NodeInventory) -> tuple[str, str] | None:
    if not node.hcas:
        return None
    inside = f"inside the {node.container} container " if node.container else ""
    if not node.verbs.devices:
        return f"{inside}no /dev/infiniband/uverbs*", "modprobe ib_uverbs; bind /dev/infiniband"
    if not node.verbs.openable:
        return (
            f"{inside}/dev/infiniband/uverbs* does not open",
            "chmod 0666 /dev/infiniband/uverbs*",
        )
    if not node.verbs.library:
        return f"{inside}libibverbs.so.1 does not load", "install rdma-core (libibverbs1)"
    return None
