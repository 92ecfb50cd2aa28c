"""Which interface carries NCCL's bootstrap, NCCL without InfiniBand, and gloo."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpc_train.preflight.inventory.interfaces import USABLE_KINDS, is_link_local

if TYPE_CHECKING:
    from hpc_train.preflight.choose.site_profile import SiteProfile
    from hpc_train.preflight.inventory.inventory import Interface, NodeInventory

__all__ = ["SocketChoice", "choose_socket", "is_one_host", "usable_interfaces"]


@dataclass(frozen=True, kw_only=True)
class SocketChoice:
    """One interface a node, all in one subnet where there is one.

    Attributes:
        names: Interface by node.
        addresses: Its numeric address by node.
        reason: Why this one, one line.
        is_routed: The nodes are in different subnets.
        is_ipv6: The addresses are IPv6.
    """

    names: dict[str, str]
    addresses: dict[str, str]
    reason: str
    is_routed: bool = False
    is_ipv6: bool = False


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


def usable_interfaces(node: NodeInventory) -> list[Interface]:
    """Return interfaces that are up, of a kind that leaves the node, with a routable address."""
    return [item for item in node.interfaces if _places(item)]


def is_one_host(nodes: list[NodeInventory]) -> bool:
    """Return whether all inventories are of one kernel and one host name."""
    return len({(node.hostname, node.boot_id) for node in nodes}) <= 1


def choose_socket(nodes: list[NodeInventory], profile: SiteProfile) -> SocketChoice | None:
    """Return the best interface that every node has, or None where there is none.

    In one subnet before routed; IPoIB before Ethernet, as NCCL prefers; then the faster one; then
    the lower index. Bridges, veth, docker, cni and link-local addresses are no ways between nodes,
    although NCCL itself leaves only some of them out (findInterfaces in NCCL's socket.cc).
    """
    by_network = _by_network(nodes)
    shared = [
        (network, places)
        for network, places in by_network.items()
        if len(places) == len(nodes) and (is_one_host(nodes) or _are_distinct(places))
    ]
    if shared:
        network, places = min(shared, key=lambda item: _rank(item[1], profile))
        return _choice(places, f"every node has it in {network}{_others(shared, network)}")
    return _routed(nodes, profile) or _loopback(nodes)


def _places(interface: Interface) -> list[_Socket]:
    if interface.kind not in USABLE_KINDS or interface.state not in ("up", "unknown"):
        return []
    return [
        _Socket(interface, address)
        for address in interface.ipv4 + interface.ipv6
        if not is_link_local(address)
    ]


def _by_network(nodes: list[NodeInventory]) -> dict[str, dict[str, _Socket]]:
    found: dict[str, dict[str, _Socket]] = {}
    for node in nodes:
        for interface in node.interfaces:
            for place in _places(interface):
                found.setdefault(place.network, {}).setdefault(node.node, place)
    return found


def _are_distinct(places: dict[str, _Socket]) -> bool:
    """An address that several nodes share is a private network of each, not one between them."""
    return len({place.host for place in places.values()}) == len(places)


def _rank(places: dict[str, _Socket], profile: SiteProfile) -> tuple[int, int, int, int, int]:
    items = [place.interface for place in places.values()]
    return (
        0 if all(item.name == profile.socket_interface for item in items) else 1,
        1 if any(":" in place.host for place in places.values()) else 0,
        0 if all(item.kind == "ipoib" for item in items) else 1,
        -min(item.speed_mbps or 0 for item in items),
        max(item.index or 0 for item in items),
    )


def _others(shared: list[tuple[str, dict[str, _Socket]]], network: str) -> str:
    rest = [places for key, places in shared if key != network]
    names = sorted({place.interface.name for places in rest for place in places.values()})
    return f", preferred to {', '.join(names)}" if names else ""


def _choice(places: dict[str, _Socket], reason: str, *, is_routed: bool = False) -> SocketChoice:
    kinds = sorted({place.interface.kind for place in places.values()})
    speeds = [place.interface.speed_mbps for place in places.values() if place.interface.speed_mbps]
    speed = f" at {min(speeds) / 1000:g} Gbit/s" if speeds else ""
    return SocketChoice(
        names={node: place.interface.name for node, place in places.items()},
        addresses={node: place.host for node, place in places.items()},
        reason=f"{'/'.join(kinds)}{speed}: {reason}",
        is_routed=is_routed,
        is_ipv6=any(":" in place.host for place in places.values()),
    )


def _routed(nodes: list[NodeInventory], profile: SiteProfile) -> SocketChoice | None:
    """Fall back to a name that every node has with distinct addresses, in whatever subnet."""
    candidates = []
    for name in sorted({item.name for node in nodes for item in usable_interfaces(node)}):
        places = {
            node.node: _places(interface)[0]
            for node in nodes
            if (interface := node.interface(name)) is not None and _places(interface)
        }
        if len(places) == len(nodes) and _are_distinct(places):
            candidates.append(places)
    if not candidates:
        return None
    best = min(candidates, key=lambda places: _rank(places, profile))
    return _choice(best, "every node has it, in different subnets behind a router", is_routed=True)


def _loopback(nodes: list[NodeInventory]) -> SocketChoice | None:
    """One host that has no way out still trains on its own GPUs."""
    if not is_one_host(nodes):
        return None
    lo = next((item for node in nodes for item in node.interfaces if item.kind == "loopback"), None)
    if lo is None:
        return None
    address = lo.ipv4[0].partition("/")[0] if lo.ipv4 else "127.0.0.1"
    return SocketChoice(
        names={node.node: lo.name for node in nodes},
        addresses={node.node: address for node in nodes},
        reason="one host, and no other interface is up",
    )
