"""Which ports of which HCAs carry the training: one link layer, one rate, alive on every node."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from hpc_train.preflight.checks.middle import most_common
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.inventory.inventory import Gid, NodeInventory, Port

VERBS_FIX = "modprobe ib_uverbs; bind /dev/infiniband into the container"
MEMLOCK_FIX = (
    "LimitMEMLOCK=infinity for slurmd; PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"
)
PORT_FIX = "look at the switch and the subnet manager (ibstat, sminfo)"

# An HCA and the number of one of its ports.
PortName = tuple[str, int]
_Pool = dict[PortName, list[Port]]  # the ports of that name on all nodes that have it


@dataclass(frozen=True, kw_only=True)
class HcaChoice:
    """What the fabric can offer to all nodes."""

    # Chosen ports by node; empty where InfiniBand (or RoCE) cannot serve all nodes
    ports: dict[str, tuple[PortName, ...]] = field(default_factory=dict)
    link_layer: str | None = None  # `InfiniBand` or `Ethernet`, None without any HCA
    rate_gbps: float | None = None  # majority rate of a chosen port
    # What the fabric would offer if every port were alive, by the majority of nodes
    compute: tuple[PortName, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()  # (port, why) for each one that is not used
    # (node, why, fix) for each node that has no usable port
    without: tuple[tuple[str, str, str], ...] = ()
    capable: int = 0  # number of nodes that have one

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


def ports_of(node: NodeInventory) -> dict[PortName, Port]:
    """Return all ports of a node by (HCA, port), in PCI order."""
    return {(hca.name, port.number): port for hca in node.hcas for port in hca.ports}


def port_label(key: PortName) -> str:
    """Return the port as NCCL_IB_HCA and the findings write it."""
    return f"{key[0]}:{key[1]}"


def choose_hcas(
    nodes: list[NodeInventory], profile: SiteProfile, memlock_mib: int = 0
) -> HcaChoice:
    """Return the ports to use on each node, and why the others are left out.

    With less lockable memory than `memlock_mib` a node cannot register NCCL's buffers. On a few
    nodes that is their fault, and a check's to tell; on most it is the site's, and decides.
    """
    low = [node for node in nodes if _locks_less(node, memlock_mib)]
    memlock_mib = memlock_mib if 2 * len(low) > len(nodes) else 0
    left_out: dict[PortName, str] = {}
    pool = _pool(nodes, profile, left_out)
    if not pool:
        return HcaChoice(left_out=_told(left_out))
    layer = profile.link_layer or _link_layer(nodes, pool)
    for key, ports in list(pool.items()):
        if (own_layer := _layer(ports)) != layer:
            left_out[key] = f"link layer {own_layer}, the training uses {layer}"
            del pool[key]
    rate = _rate_class(pool)
    for key, ports in list(pool.items()):
        if (own_rate := _rate(ports)) != rate:
            left_out[key] = f"{own_rate or 0:g} Gbit/s, the others have {rate:g}"
            del pool[key]
    usable = {node.node: _usable(node, layer, memlock_mib) for node in nodes}
    chosen = _on_all(pool, usable, left_out) or _by_position(usable, left_out)
    without = tuple(
        (node.node, *(_lacks(node, memlock_mib) or (f"no ACTIVE {layer} port", PORT_FIX)))
        for node in nodes
        if not set(usable[node.node]) - left_out.keys()
    )
    return HcaChoice(
        ports=chosen,
        link_layer=layer,
        rate_gbps=rate,
        compute=tuple(key for key in pool if 2 * _alive(pool[key]) >= len(nodes)),
        left_out=_told(left_out),
        without=() if chosen else without,
        capable=len(nodes) - len(without),
    )


def _told(left_out: dict[PortName, str]) -> tuple[tuple[str, str], ...]:
    return tuple((port_label(key), why) for key, why in sorted(left_out.items()))


def _pool(nodes: list[NodeInventory], profile: SiteProfile, left_out: dict[PortName, str]) -> _Pool:
    """Return every port of every node without those of storage and bonds."""
    every: _Pool = {}
    plain: dict[PortName, None] = {}
    bonds: dict[PortName, None] = {}
    for node in nodes:
        for hca in node.hcas:
            for port in hca.ports:
                key = (hca.name, port.number)
                every.setdefault(key, []).append(port)
                if hca.name in profile.hca_exclude:
                    left_out[key] = "the site's profile leaves it out"
                else:
                    (bonds if hca.is_bond else plain)[key] = None
    if any(_alive(every[key]) for key in plain):
        left_out.update(dict.fromkeys(bonds, "a bond: storage or management, not for training"))
        return {key: every[key] for key in plain if key not in bonds}
    # A site whose only live HCAs are bonds trains over them.
    return {key: every[key] for key in plain | bonds}


def _alive(ports: list[Port]) -> int:
    return sum(1 for port in ports if port.is_active)


def _layer(ports: list[Port]) -> str | None:
    return most_common(port.link_layer for port in ports if port.link_layer)


def _rate(ports: list[Port]) -> float | None:
    """Return the rate most nodes have there; a dead port's rate (10 by default) says nothing."""
    known = [port for port in ports if port.rate_gbps]
    alive = [port for port in known if port.is_active] or known
    return most_common(port.rate_gbps for port in alive if port.rate_gbps)


def _link_layer(nodes: list[NodeInventory], pool: _Pool) -> str | None:
    """Return InfiniBand where most nodes have a live port of it, else what most ports have.

    HCAs of two link layers in one ring fail to connect (ibv_modify_qp times out).
    """
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
    return most_common(layer for ports in pool.values() if (layer := _layer(ports)) is not None)


def _rate_class(pool: _Pool) -> float | None:
    """Return the rate whose ports together carry most; the slower rest is storage or management."""
    alive = [ports for ports in pool.values() if _alive(ports)]
    totals: dict[float, float] = {}
    for ports in alive or pool.values():
        if rate := _rate(ports):
            totals[rate] = totals.get(rate, 0.0) + rate
    return max(totals, key=lambda rate: (totals[rate], rate), default=None)


def _usable(node: NodeInventory, layer: str | None, memlock_mib: int) -> list[PortName]:
    if _lacks(node, memlock_mib):
        return []
    ports = ports_of(node).items()
    return [key for key, port in ports if port.is_active and port.link_layer == layer]


def _lacks(node: NodeInventory, memlock_mib: int) -> tuple[str, str] | None:
    """Return what keeps NCCL from every HCA of the node, and the fix."""
    if not node.hcas:
        return "no HCA", "lspci | grep Mellanox; dmesg | grep mlx5"
    if not node.verbs.library:
        return "libibverbs.so.1 does not load", "install rdma-core (libibverbs1)"
    if not node.verbs.devices or node.verbs.openable is False:
        return "no /dev/infiniband/uverbs* that opens", VERBS_FIX
    if _locks_less(node, memlock_mib):
        return f"{(node.limits.memlock_bytes or 0) / 2**20:g} MiB may be locked", MEMLOCK_FIX
    return None


def _locks_less(node: NodeInventory, memlock_mib: int) -> bool:
    limit = node.limits.memlock_bytes
    return bool(node.hcas) and limit is not None and -1 < limit < memlock_mib * 2**20


def _on_all(
    pool: _Pool, usable: dict[str, list[PortName]], left_out: dict[PortName, str]
) -> dict[str, tuple[PortName, ...]]:
    """Return the ports that are alive under one name on every node, {} where there is none.

    A port that is dead on one node is left out on all: with different sets NCCL either loses
    bandwidth silently or hangs in its initialisation.
    """
    chosen = [key for key in pool if all(key in keys for keys in usable.values())]
    fewest = min(len(pool.keys() & keys) for keys in usable.values())
    if not chosen or 2 * len(chosen) < fewest:
        return {}  # the nodes name their HCAs differently
    for key in pool:
        dead = [node for node, keys in usable.items() if key not in keys]
        if dead:
            more = f" and {len(dead) - 4} more" if len(dead) > 4 else ""
            left_out[key] = f"not usable on {', '.join(dead[:4])}{more}, so left out on all"
    return dict.fromkeys(usable, tuple(chosen))


def _by_position(
    usable: dict[str, list[PortName]], left_out: dict[PortName, str]
) -> dict[str, tuple[PortName, ...]]:
    """Return as many live ports on each node, by their place on the bus, where names differ."""
    kept = {node: [key for key in keys if key not in left_out] for node, keys in usable.items()}
    count = min(map(len, kept.values()), default=0)
    return {node: tuple(keys[:count]) for node, keys in kept.items()} if count else {}


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
        {_subnet(node, choice.ports[node.node][index]) for node in nodes}
        for index in range(min(map(len, choice.ports.values())))
    ]
    if len(rails) < 2 or any(len(rail) != 1 or None in rail for rail in rails):
        return False
    return len(set.union(*rails)) == len(rails)


def _subnet(node: NodeInventory, key: PortName) -> str | None:
    port = ports_of(node)[key]
    if port.link_layer != "Ethernet":
        return port.gids[0].subnet_prefix if port.gids else None
    usable = [gid for gid in port.gids if not gid.is_link_local]
    interface = node.interface(usable[0].interface or "") if usable else None
    if interface is None or not interface.ipv4:
        return None
    return str(ipaddress.ip_interface(interface.ipv4[0]).network)
