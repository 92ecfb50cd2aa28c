"""Which ports of which HCAs carry the training: one link layer, one rate, alive on every node."""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hpc_train.preflight.choose.site_profile import SiteProfile
    from hpc_train.preflight.inventory.inventory import Gid, NodeInventory, Port

__all__ = [
    "MEMLOCK_FIX",
    "HcaChoice",
    "PortName",
    "choose_hcas",
    "gid_indices",
    "is_rail_fabric",
    "ports_of",
]

M = TypeVar("M", str, float)

VERBS_FIX = "modprobe ib_uverbs; bind /dev/infiniband into the container"
MEMLOCK_FIX = (
    "LimitMEMLOCK=infinity for slurmd; PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"
)
PORT_FIX = "look at the switch and the subnet manager (ibstat, sminfo)"

# An HCA and the number of one of its ports.
PortName = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class HcaChoice:
    """What the fabric can offer to all nodes.

    Attributes:
        ports: Chosen ports by node; empty where InfiniBand (or RoCE) cannot serve all nodes.
        link_layer: `InfiniBand` or `Ethernet`, None without any HCA.
        rate_gbps: Majority rate of a chosen port.
        compute: What the fabric would offer if every port were alive, by the majority of nodes.
        left_out: (port, why) for each one that is not used.
        without: (node, why, fix) for each node that has no usable port.
        capable: Number of nodes that have one.
    """

    ports: dict[str, tuple[PortName, ...]] = field(default_factory=dict)
    link_layer: str | None = None
    rate_gbps: float | None = None
    compute: tuple[PortName, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    without: tuple[tuple[str, str, str], ...] = ()
    capable: int = 0

    @property
    def serves_all(self) -> bool:
        """Whether NCCL can use the HCAs on every node."""
        return bool(self.ports)

    @property
    def are_meant(self) -> bool:
        """Whether at least half of the nodes can use them: what keeps the others from it counts.

        Where most nodes cannot, that is the site's, and TCP is what there is.
        """
        return self.capable > 0 and self.capable >= len(self.without)

    @property
    def share(self) -> float:
        """Share of the fabric's ports that is used, 1.0 where nothing is lost."""
        if not self.compute:
            return 1.0
        used = min((len(ports) for ports in self.ports.values()), default=0)
        return used / len(self.compute)


def ports_of(node: NodeInventory) -> dict[PortName, Port]:
    """Return all ports of a node by (HCA, port), in PCI order."""
    return {(hca.name, port.number): port for hca in node.hcas for port in hca.ports}


def choose_hcas(
    nodes: list[NodeInventory], profile: SiteProfile, memlock_mib: int = 0
) -> HcaChoice:
    """Return the ports to use on each node, and why the others are left out.

    Args:
        nodes: Of the job.
        profile: The site's.
        memlock_mib: With less lockable memory a node cannot register NCCL's buffers. On a few nodes
            that is their fault, and a check's to tell; on most it is the site's, and decides.
    """
    low = [node for node in nodes if _locks_less(node, memlock_mib)]
    memlock_mib = memlock_mib if 2 * len(low) > len(nodes) else 0
    left_out: dict[PortName, str] = {}
    pool = _pool(nodes, profile, left_out)
    if not pool:
        return HcaChoice(left_out=_told(left_out))
    layer = _link_layer(nodes, pool, profile)
    for port in [port for port in pool if _majority_layer(nodes, port) != layer]:
        left_out[port] = f"link layer {_majority_layer(nodes, port)}, the training uses {layer}"
        pool.remove(port)
    rate = _rate_class(nodes, pool)
    for port in [port for port in pool if _majority_rate(nodes, port) != rate]:
        left_out[port] = f"{_majority_rate(nodes, port) or 0:g} Gbit/s, the others have {rate:g}"
        pool.remove(port)
    compute = [port for port in pool if _is_compute(nodes, port)]
    usable = {node.node: _usable(node, layer, memlock_mib) for node in nodes}
    chosen = _on_all(nodes, pool, usable, left_out) or _by_position(nodes, usable, set(left_out))
    without = _without(nodes, usable, set(left_out), layer, memlock_mib)
    return HcaChoice(
        ports=chosen,
        link_layer=layer,
        rate_gbps=rate,
        compute=tuple(compute),
        left_out=_told(left_out),
        without=() if chosen else tuple(without),
        capable=len(nodes) - len(without),
    )


def _told(left_out: dict[PortName, str]) -> tuple[tuple[str, str], ...]:
    return tuple((f"{hca}:{port}", why) for (hca, port), why in sorted(left_out.items()))


def _pool(
    nodes: list[NodeInventory], profile: SiteProfile, left_out: dict[PortName, str]
) -> list[PortName]:
    """Return every port of every node without those of storage and bonds."""
    pool: dict[PortName, None] = {}
    bonds: dict[PortName, None] = {}
    for node in nodes:
        for hca in node.hcas:
            for port in hca.ports:
                key = (hca.name, port.number)
                if hca.name in profile.hca_exclude:
                    left_out[key] = "the site's profile leaves it out"
                elif hca.is_bond:
                    bonds[key] = None
                else:
                    pool[key] = None
    if any(port.is_active for node in nodes for key, port in ports_of(node).items() if key in pool):
        left_out.update(dict.fromkeys(bonds, "a bond: storage or management, not for training"))
        return [key for key in pool if key not in bonds]
    # A site whose only live HCAs are bonds trains over them.
    return list(pool | bonds)


def _of(nodes: list[NodeInventory], key: PortName) -> list[Port]:
    return [port for node in nodes if (port := ports_of(node).get(key)) is not None]


def _majority_layer(nodes: list[NodeInventory], key: PortName) -> str | None:
    return _mode([port.link_layer for port in _of(nodes, key) if port.link_layer])


def _majority_rate(nodes: list[NodeInventory], key: PortName) -> float | None:
    """Return the rate most nodes have there; a dead port's rate (10 by default) says nothing."""
    ports = _of(nodes, key)
    alive = [port.rate_gbps for port in ports if port.is_active and port.rate_gbps]
    return _mode(alive or [port.rate_gbps for port in ports if port.rate_gbps])


def _mode(values: list[M]) -> M | None:
    counts = Counter(values)
    # Ties go to the larger value, so that the answer does not depend on the nodes' order.
    return max(counts, key=lambda value: (counts[value], value)) if counts else None


def _link_layer(
    nodes: list[NodeInventory], pool: list[PortName], profile: SiteProfile
) -> str | None:
    """Return the profile's link layer, else InfiniBand where most nodes have a live port of it.

    HCAs of two link layers in one ring fail to connect (ibv_modify_qp times out).
    """
    if profile.link_layer is not None:
        return profile.link_layer
    with_live_ib = sum(
        any(
            port.is_active and port.link_layer == "InfiniBand"
            for key, port in ports_of(node).items()
            if key in pool
        )
        for node in nodes
    )
    if 2 * with_live_ib >= len(nodes):
        return "InfiniBand"
    return _mode([layer for key in pool if (layer := _majority_layer(nodes, key)) is not None])


def _rate_class(nodes: list[NodeInventory], pool: list[PortName]) -> float | None:
    """Return the rate whose ports together carry most; the slower rest is storage or management."""
    alive = [key for key in pool if any(port.is_active for port in _of(nodes, key))]
    totals: dict[float, float] = {}
    for key in alive or pool:
        rate = _majority_rate(nodes, key)
        if rate:
            totals[rate] = totals.get(rate, 0.0) + rate
    return max(totals, key=lambda rate: (totals[rate], rate), default=None)


def _is_compute(nodes: list[NodeInventory], key: PortName) -> bool:
    """Return whether the port is meant to work: alive on half of the nodes or more."""
    alive = sum(1 for port in _of(nodes, key) if port.is_active)
    return alive > 0 and 2 * alive >= len(nodes)


def _usable(node: NodeInventory, layer: str | None, memlock_mib: int) -> list[PortName]:
    if _lacks(node, memlock_mib):
        return []
    return [
        key for key, port in ports_of(node).items() if port.is_active and port.link_layer == layer
    ]


def _lacks(node: NodeInventory, memlock_mib: int) -> tuple[str, str] | None:
    """Return what keeps NCCL from every HCA of the node, and the fix."""
    limit = node.limits.memlock_bytes
    if not node.hcas:
        return "no HCA", "lspci | grep Mellanox; dmesg | grep mlx5"
    if not node.verbs.library:
        return "libibverbs.so.1 does not load", "install rdma-core (libibverbs1)"
    if not node.verbs.devices or node.verbs.openable is False:
        return "no /dev/infiniband/uverbs* that opens", VERBS_FIX
    if limit is not None and _locks_less(node, memlock_mib):
        return f"{limit / 2**20:g} MiB may be locked", MEMLOCK_FIX
    return None


def _locks_less(node: NodeInventory, memlock_mib: int) -> bool:
    limit = node.limits.memlock_bytes
    return bool(node.hcas) and limit not in (None, -1) and limit < memlock_mib * 2**20


def _on_all(
    nodes: list[NodeInventory],
    pool: list[PortName],
    usable: dict[str, list[PortName]],
    left_out: dict[PortName, str],
) -> dict[str, tuple[PortName, ...]]:
    """Return the ports that are alive under one name on every node, {} where there is none.

    A port that is dead on one node is left out on all: with different sets NCCL either loses
    bandwidth silently or hangs in its initialisation.
    """
    chosen = [key for key in pool if all(key in usable[node.node] for node in nodes)]
    fewest = min(len(_kept(usable[node.node], pool)) for node in nodes)
    if not chosen or 2 * len(chosen) < fewest:
        return {}  # the nodes name their HCAs differently
    for key in pool:
        if key not in chosen:
            dead = [node.node for node in nodes if key not in usable[node.node]]
            left_out[key] = f"not usable on {_some(dead)}, so left out on all"
    return {node.node: tuple(chosen) for node in nodes}


def _by_position(
    nodes: list[NodeInventory], usable: dict[str, list[PortName]], left_out: set[PortName]
) -> dict[str, tuple[PortName, ...]]:
    """Return as many live ports on each node, by their place on the bus, where names differ."""
    kept = {name: [key for key in ports if key not in left_out] for name, ports in usable.items()}
    count = min((len(ports) for ports in kept.values()), default=0)
    return {node.node: tuple(kept[node.node][:count]) for node in nodes} if count else {}


def _kept(ports: list[PortName], pool: list[PortName]) -> list[PortName]:
    return [key for key in ports if key in pool]


def _without(
    nodes: list[NodeInventory],
    usable: dict[str, list[PortName]],
    left_out: set[PortName],
    layer: str | None,
    memlock_mib: int,
) -> list[tuple[str, str, str]]:
    found = []
    for node in nodes:
        if [key for key in usable[node.node] if key not in left_out]:
            continue
        why, fix = _lacks(node, memlock_mib) or (f"no ACTIVE {layer} port", PORT_FIX)
        found.append((node.node, why, fix))
    return found


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def gid_indices(node: NodeInventory, ports: tuple[PortName, ...]) -> set[int | None]:
    """Return the index of the routable RoCE v2 GID of each port, None where a port has none.

    IPv4-mapped entries come before global IPv6 ones, as NCCL prefers them.
    """
    table = ports_of(node)
    return {_routable(table[key].gids) for key in ports if key in table}


def _routable(gids: tuple[Gid, ...]) -> int | None:
    usable = [gid for gid in gids if gid.type == "RoCE v2" and not gid.is_link_local]
    return min(usable, key=lambda gid: (not gid.is_ipv4, gid.index)).index if usable else None


def is_rail_fabric(nodes: list[NodeInventory], choice: HcaChoice) -> bool:
    """Return whether HCA k of every node shares a subnet with its like and with no other HCA."""
    if len(choice.compute) < 2 or not choice.serves_all:
        return False
    rails = [
        {_subnet(node, ports[index]) for node in nodes if (ports := choice.ports[node.node])}
        for index in range(min(len(ports) for ports in choice.ports.values()))
    ]
    if len(rails) < 2 or any(len(rail) != 1 or None in rail for rail in rails):
        return False
    return len(set.union(*rails)) == len(rails)


def _subnet(node: NodeInventory, key: PortName) -> str | None:
    port = ports_of(node).get(key)
    if port is None:
        return None
    if port.link_layer == "Ethernet":
        usable = [gid for gid in port.gids if not gid.is_link_local]
        interface = node.interface(usable[0].interface or "") if usable else None
        return _network(interface.ipv4) if interface else None
    return port.gids[0].subnet_prefix if port.gids else None


def _network(addresses: tuple[str, ...]) -> str | None:
    return str(ipaddress.ip_interface(addresses[0]).network) if addresses else None
