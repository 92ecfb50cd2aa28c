"""Network interfaces: what kind each is, where it leads, and whether anything can pass.

With the root `/` the addresses come from the kernel (ioctl); under another root they come from that
tree's proc/net, so that a snapshot of a node serves as the node.
"""

from __future__ import annotations

import fcntl
import ipaddress
import re
import socket
import struct
from typing import TYPE_CHECKING

from hpc_train.preflight.inventory.inventory import Interface

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpc_train.preflight.inventory.sysfs import Reader

__all__ = ["USABLE_KINDS", "is_link_local", "kind_of", "read_interfaces"]

# Kinds that may connect two nodes. Bridges and veth pairs named by container engines do not.
USABLE_KINDS = ("ipoib", "bond", "ethernet", "vlan")

_TYPE_LOOPBACK = 772
_TYPE_IPOIB = 32
_TYPE_ETHERNET = 1
_SIOCGIFADDR = 0x8915
_SIOCGIFNETMASK = 0x891B

_BY_NAME = (
    ("docker", re.compile(r"docker|br-[0-9a-f]{12}$|podman")),
    ("virbr", re.compile(r"virbr|vnet|lxcbr|lxdbr")),
    ("veth", re.compile(r"veth|vif")),
    ("cni", re.compile(r"cni|cali|flannel|cilium|lxc|kube|weave|nodelocaldns")),
    ("tunnel", re.compile(r"tun|tap|wg|tailscale|gre|sit|ip6tnl|vxlan|geneve|dummy|ifb")),
)


def kind_of(name: str, type_number: int | None, marks: frozenset[str]) -> str:
    """Return an interface's kind.

    A container engine's veth is told by its name and not by its being a veth: inside a container or
    namespace `eth0` is one end of a veth pair and still the way out.

    Args:
        name: `eth0`.
        type_number: ARPHRD number of /sys/class/net/I/type.
        marks: Which of `bridge`, `bonding`, `tun_flags`, `vlan` the kernel shows for it.
    """
    if type_number == _TYPE_LOOPBACK:
        return "loopback"
    for kind, pattern in _BY_NAME:
        if pattern.match(name):
            return kind
    if type_number == _TYPE_IPOIB:
        return "ipoib"
    for mark, kind in (
        ("bonding", "bond"),
        ("bridge", "bridge"),
        ("tun_flags", "tunnel"),
        ("vlan", "vlan"),
    ):
        if mark in marks:
            return kind
    return "ethernet" if type_number == _TYPE_ETHERNET else "other"


def is_link_local(address: str) -> bool:
    """Return whether `10.0.0.1/24` or an IPv6 one is of the kind that no router passes on."""
    return ipaddress.ip_interface(address).is_link_local


def read_interfaces(reader: Reader) -> tuple[Interface, ...]:
    """Return all interfaces in order of the kernel's index, the order in which NCCL walks them."""
    names = [
        name
        for name in reader.names("/sys/class/net")
        if reader.exists(f"/sys/class/net/{name}/type")
    ]
    ipv4 = _kernel_ipv4(names) if str(reader.root) == "/" else _proc_ipv4(reader)
    ipv6 = _ipv6(reader)
    found = [_interface(reader, name, ipv4.get(name, []), ipv6.get(name, [])) for name in names]
    return tuple(sorted(found, key=lambda item: (item.index or 0, item.name)))


def _interface(reader: Reader, name: str, ipv4: list[str], ipv6: list[str]) -> Interface:
    base = f"/sys/class/net/{name}"
    marks = {mark for mark in ("bridge", "bonding", "tun_flags") if reader.exists(f"{base}/{mark}")}
    if "DEVTYPE=vlan" in (reader.text(f"{base}/uevent", required=False) or ""):
        marks.add("vlan")
    return Interface(
        name=name,
        kind=kind_of(name, reader.number(f"{base}/type"), frozenset(marks)),
        index=reader.number(f"{base}/ifindex"),
        state=reader.text(f"{base}/operstate"),
        speed_mbps=_speed(reader, f"{base}/speed"),
        mtu=reader.number(f"{base}/mtu"),
        ipv4=tuple(ipv4),
        ipv6=tuple(ipv6),
    )


def _speed(reader: Reader, path: str) -> int | None:
    """Return Mbit/s; virtual and downed interfaces answer EINVAL or -1, which says nothing."""
    before = len(reader.unreadable)
    speed = reader.number(path, required=False)
    del reader.unreadable[before:]
    return speed if speed is not None and speed > 0 else None


def _kernel_ipv4(names: list[str]) -> dict[str, list[str]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return {name: list(_ioctl_address(sock, name)) for name in names}


def _ioctl_address(sock: socket.socket, name: str) -> Iterator[str]:
    request = struct.pack("256s", name.encode()[:15])
    try:
        address = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)[20:24]
        mask = fcntl.ioctl(sock.fileno(), _SIOCGIFNETMASK, request)[20:24]
    except OSError:
        return  # EADDRNOTAVAIL: it has no IPv4 address
    prefix = bin(int.from_bytes(mask, "big")).count("1")
    yield f"{socket.inet_ntoa(address)}/{prefix}"


def _ipv6(reader: Reader) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (reader.text("/proc/net/if_inet6", required=False) or "").splitlines():
        fields = line.split()
        if len(fields) == 6 and len(fields[0]) == 32:
            address = ipaddress.IPv6Address(bytes.fromhex(fields[0]))
            found.setdefault(fields[5], []).append(f"{address}/{int(fields[2], 16)}")
    return found


def _routes(reader: Reader) -> Iterator[tuple[str, ipaddress.IPv4Network, bool]]:
    """Yield (interface, network, is it on the link) for each line of /proc/net/route."""
    for line in (reader.text("/proc/net/route", required=False) or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) < 8:
            continue
        network = _little_endian(fields[1])
        prefix = bin(int(fields[7], 16)).count("1")
        yield (
            fields[0],
            ipaddress.IPv4Network((network, prefix), strict=False),
            fields[2] == "00000000",
        )


def _little_endian(text: str) -> str:
    return socket.inet_ntoa(int(text, 16).to_bytes(4, "little"))


def _proc_ipv4(reader: Reader) -> dict[str, list[str]]:
    on_link = [(name, network) for name, network, direct in _routes(reader) if direct]
    found: dict[str, list[str]] = {}
    for text in _local_addresses(reader.text("/proc/net/fib_trie", required=False) or ""):
        address = ipaddress.IPv4Address(text)
        if address.is_loopback:
            found.setdefault("lo", [f"{address}/8"])
            continue
        for name, network in on_link:
            if address in network and network.prefixlen > 0:
                found.setdefault(name, []).append(f"{address}/{network.prefixlen}")
                break
    return found


def _local_addresses(trie: str) -> list[str]:
    """Return the addresses of /proc/net/fib_trie that are `/32 host LOCAL`, each once."""
    found: dict[str, None] = {}
    last = ""
    for line in trie.splitlines():
        text = line.strip()
        if text.startswith("|-- "):
            last = text[4:]
        elif text.startswith("/32 host LOCAL"):
            found[last] = None
    return list(found)
