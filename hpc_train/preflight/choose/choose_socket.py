"""Which interface carries NCCL's bootstrap, NCCL without InfiniBand, and gloo."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.inventory.inventory import Interface, NodeInventory


@dataclass(frozen=True, kw_only=True)
class SocketChoice:
    """One interface a node, all in one subnet where there is one."""

    names: dict[str, str]  # interface by node
    addresses: dict[str, str]  # its numeric address by node
    reason: str  # why this one, one line
    is_routed: bool = False  # the nodes are in different subnets

    @property
    def is_ipv6(self) -> bool:
        """Whether an address is one of IPv6."""
        return any(":" in address for address in self.addresses.values())


@dataclass(frozen=True)
class _Socket:
    interface: Interface
    address: str  # 10.0.0.1/24

    @property
    def network(self) -> str:
        return str(ipaddress.ip_interface(self.address).network)

    @property
    def host(self) -> str:
        return self.address.partition("/")[0]


_ByNode = dict[str, _Socket]


def usable_interfaces(node: NodeInventory) -> list[Interface]:
    """Return interfaces that are up, of a kind that leaves the node, with a routable address."""
    return [item for item in node.interfaces if _sockets(item)]


def is_one_host(nodes: list[NodeInventory]) -> bool:
    """Return whether all inventories are of one kernel and one host name."""
    return len({(node.hostname, node.boot_id) for node in nodes}) <= 1


def choose_socket(nodes: list[NodeInventory], profile: SiteProfile) -> SocketChoice | None:
    """Return the best interface that every node has, or None where there is none.

    In one subnet before routed; IPoIB before Ethernet, as NCCL prefers; then the faster one; then
    the lower index. Bridges, veth, docker, cni and link-local addresses are no ways between nodes,
    although NCCL itself leaves only some of them out (findInterfaces in NCCL's socket.cc).
    """
    shared = {
        network: sockets
        for network, sockets in _by_network(nodes).items()
        if len(sockets) == len(nodes) and (is_one_host(nodes) or _are_distinct(sockets))
    }
    if not shared:
        return _routed(nodes, profile) or _loopback(nodes)
    best = min(shared, key=lambda network: _rank(shared[network], profile))
    rest = (sockets for network, sockets in shared.items() if network != best)
    own = {socket.interface.name for socket in shared[best].values()}  # it may have IPv6 as well
    others = sorted({socket.interface.name for found in rest for socket in found.values()} - own)
    preferred = f", preferred to {', '.join(others)}" if others else ""
    return _choice(shared[best], f"every node has it in {best}{preferred}")


def _sockets(interface: Interface) -> list[_Socket]:
    if not interface.is_between_nodes or not interface.is_up:
        return []
    return [_Socket(interface, address) for address in interface.routable]


def _by_network(nodes: list[NodeInventory]) -> dict[str, _ByNode]:
    found: dict[str, _ByNode] = {}
    for node in nodes:
        for interface in node.interfaces:
            for socket in _sockets(interface):
                found.setdefault(socket.network, {}).setdefault(node.node, socket)
    return found


def _are_distinct(sockets: _ByNode) -> bool:
    """An address that several nodes share is a private network of each, not one between them."""
    return len({socket.host for socket in sockets.values()}) == len(sockets)


def _rank(sockets: _ByNode, profile: SiteProfile) -> tuple[bool, bool, bool, int, int]:
    items = [socket.interface for socket in sockets.values()]
    return (
        any(item.name != profile.socket_interface for item in items),
        any(":" in socket.host for socket in sockets.values()),
        any(item.kind != "ipoib" for item in items),
        -min(item.speed_mbps or 0 for item in items),
        max(item.index or 0 for item in items),
    )


def _choice(sockets: _ByNode, reason: str, *, is_routed: bool = False) -> SocketChoice:
    items = [socket.interface for socket in sockets.values()]
    speeds = [item.speed_mbps for item in items if item.speed_mbps]
    speed = f" at {min(speeds) / 1000:g} Gbit/s" if speeds else ""
    return SocketChoice(
        names={node: socket.interface.name for node, socket in sockets.items()},
        addresses={node: socket.host for node, socket in sockets.items()},
        reason=f"{'/'.join(sorted({item.kind for item in items}))}{speed}: {reason}",
        is_routed=is_routed,
    )


def _routed(nodes: list[NodeInventory], profile: SiteProfile) -> SocketChoice | None:
    """Fall back to a name that every node has with distinct addresses, in whatever subnet."""
    by_name: dict[str, _ByNode] = {}
    for node in nodes:
        for interface in usable_interfaces(node):
            by_name.setdefault(interface.name, {})[node.node] = _sockets(interface)[0]
    named = [by_name[name] for name in sorted(by_name)]
    found = [item for item in named if len(item) == len(nodes) and _are_distinct(item)]
    if not found:
        return None
    best = min(found, key=lambda sockets: _rank(sockets, profile))
    return _choice(best, "every node has it, in different subnets behind a router", is_routed=True)


def _loopback(nodes: list[NodeInventory]) -> SocketChoice | None:
    """One host that has no way out still trains on its own GPUs."""
    lo = next((item for node in nodes for item in node.interfaces if item.kind == "loopback"), None)
    if lo is None or not is_one_host(nodes):
        return None
    address = lo.ipv4[0].partition("/")[0] if lo.ipv4 else "127.0.0.1"
    return SocketChoice(
        names={node.node: lo.name for node in nodes},
        addresses={node.node: address for node in nodes},
        reason="one host, and no other interface is up",
    )
