"""Checks of the HCAs: each node against the majority of the others.

What is dead everywhere is the site's layout or the whole fabric, and names nobody; what is dead
here and alive elsewhere is this node's fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hpc_train.preflight.checks.check_context import Context, Skip
from hpc_train.preflight.checks.findings import Finding, Level
from hpc_train.preflight.checks.middle import most_common
from hpc_train.preflight.choose.choose_hca import PortName, gid_indices, port_label, ports_of
from hpc_train.preflight.inventory.inventory import NodeInventory, Port

_CABLE = "check the cable and the switch port (ibstat, iblinkinfo)"
_PHYSICAL_FIX = {
    "Disabled": "it is switched off on purpose: ibportstate ... enable, or leave it out",
    "Sleep": "it is switched off on purpose: ibportstate ... enable, or leave it out",
    "Polling": f"no signal: {_CABLE}",
    "LinkUp": "the link is up and no subnet manager answers: sminfo, restart opensm",
}


def check_hca_set(context: Context) -> Iterator[Finding]:
    """HCAs that most nodes have and this one lacks, or the other way round."""
    context.need_hcas()
    context.need_several()
    compute = set(context.hcas.compute)
    whole = len(compute)
    counts = Counter(key for node in context.nodes for key in ports_of(node))
    common = {key for key, count in counts.items() if 2 * count >= len(context.nodes)}
    for node in context.nodes:
        missing = sorted(compute - set(ports_of(node)))
        if missing and not _has_as_many(node, context):
            left = whole - len(missing)
            part = ", ".join(port_label(key) for key in missing[:4])
            what = "not there" if node.hcas else "no HCA at all"
            text = f"{what}; the other nodes have {whole} ports for training, this one {left}"
            fix = "lspci | grep Mellanox; dmesg | grep mlx5; reseat or replace the card"
            level = _by_share(left / whole, context)
            yield Finding(node.node, part, "hca_set", level, text, fix)
        if not missing:
            for key in sorted(set(ports_of(node)) - common):
                text = "only some nodes have it; it is left out on all"
                yield Finding(node.node, port_label(key), "hca_set", "note", text)


def _has_as_many(node: NodeInventory, context: Context) -> bool:
    """Return whether the node has the same number of live ports under other names."""
    layer = context.hcas.link_layer
    alive = [p for p in ports_of(node).values() if p.is_active and p.link_layer == layer]
    return len(alive) >= len(context.hcas.compute)


def _by_share(share: float, context: Context) -> Level:
    """A node that keeps most of its bandwidth slows the others; one that loses most fails."""
    return "warn" if share and share >= context.thresholds.hca_share else "fail"


def check_port_state(context: Context) -> Iterator[Finding]:
    """Ports that are not ACTIVE: NCCL drops them silently."""
    context.need_hcas()
    for node in context.nodes:
        for key, port in ports_of(node).items():
            if port.is_active:
                continue
            level, text = _dead(context, node, key, port)
            state, phys = port.state or "unknown", port.phys_state or "unknown"
            evidence = f"state {state}, physical {phys}; {text}"
            fix = _PHYSICAL_FIX.get(phys, _CABLE)
            yield Finding(node.node, port_label(key), "port_state", level, evidence, fix)


def _dead(context: Context, node: NodeInventory, key: PortName, port: Port) -> tuple[Level, str]:
    if port.state is None:
        return "unknown", "its state cannot be read"
    compute = context.hcas.compute
    seen = [table[key] for other in context.nodes if key in (table := ports_of(other))]
    active = sum(1 for other in seen if other.is_active)
    text = f"ACTIVE on {active} of {len(seen)} nodes"
    if key not in compute or len(context.nodes) == 1 or active == 0:
        return "note", text
    alive_here = [name for name, mine in ports_of(node).items() if mine.is_active]
    level = _by_share(len(set(alive_here) & set(compute)) / len(compute), context)
    return level, f"{text}; NCCL would drop it silently"


def check_rate(context: Context) -> Iterator[Finding]:
    """One port that trained down to a lower rate slows every ring through it."""
    context.need_hcas()
    context.need_several()
    for key in context.hcas.compute:
        rates = {
            node.node: port.rate_gbps
            for node in context.nodes
            if (port := ports_of(node).get(key)) and port.is_active and port.rate_gbps is not None
        }
        common = most_common(rates.values()) or 0.0
        for node_name, rate in rates.items():
            if rate < common:
                count = list(rates.values()).count(common)
                text = f"{rate:g} Gbit/s, {rate / common:.0%} of the {common:g} of"
                text += f" {count} of {len(rates)} nodes"
                level, fix = _by_share(rate / common, context), f"the link trained down: {_CABLE}"
                yield Finding(node_name, port_label(key), "rate", level, text, fix)


def check_link_layer(context: Context) -> Iterator[Finding]:
    """HCAs of one name and two link layers cannot connect to each other."""
    context.need_hcas()
    common = context.hcas.link_layer
    fix = "mlxconfig -d DEV set LINK_TYPE_P1=... and reboot the node"
    for key in context.hcas.compute:
        for node in context.nodes:
            port = ports_of(node).get(key)
            if port and port.link_layer and port.link_layer != common:
                text = f"{port.link_layer}; the others have {common}"
                yield Finding(node.node, port_label(key), "link_layer", "fail", text, fix)


def check_lids(context: Context) -> Iterator[Finding]:
    """An InfiniBand port without a LID, or without a subnet manager, carries nothing."""
    context.need_hcas()
    if context.hcas.link_layer != "InfiniBand":
        raise Skip("RoCE has no LIDs")
    fix = "sminfo; restart the subnet manager"
    for node in context.nodes:
        for key, port in ports_of(node).items():
            if not port.is_active or port.link_layer != "InfiniBand":
                continue
            missing = [name for name in ("lid", "sm_lid") if getattr(port, name) == 0]
            if missing:
                text = f"ACTIVE with {' and '.join(missing)} 0"
                yield Finding(node.node, port_label(key), "lid", "fail", text, fix)


def check_gids(context: Context) -> Iterator[Finding]:
    """A RoCE port needs a routable RoCE v2 GID; on InfiniBand a link-local one is normal."""
    context.need_hcas()
    if context.hcas.link_layer != "Ethernet":
        raise Skip("matters on RoCE alone")
    text = "no routable RoCE v2 GID: ibv_modify_qp will time out"
    fix = "give its interface an address; cma_roce_mode -d DEV -m 2"
    for node in context.nodes:
        for key in context.hcas.ports.get(node.node, ()):
            if None in gid_indices(node, (key,)):
                yield Finding(node.node, port_label(key), "gids", "fail", text, fix)


def check_verbs(context: Context) -> Iterator[Finding]:
    """HCAs that no process here can open: NCCL falls back to TCP and says nothing."""
    context.need_hcas()
    for node in context.nodes:
        if node.hcas and (said := _unreachable(node)):
            inside = f"inside the {node.container} container " if node.container else ""
            text = f"{inside}{said[0]}: NCCL falls back to TCP without a word"
            yield Finding(node.node, "verbs", "verbs", "fail", text, said[1])


def _unreachable(node: NodeInventory) -> tuple[str, str] | None:
    if not node.verbs.devices:
        return "no /dev/infiniband/uverbs*", "modprobe ib_uverbs; bind /dev/infiniband"
    if not node.verbs.openable:
        return "/dev/infiniband/uverbs* does not open", "chmod 0666 /dev/infiniband/uverbs*"
    if not node.verbs.library:
        return "libibverbs.so.1 does not load", "install rdma-core (libibverbs1)"
    return None
