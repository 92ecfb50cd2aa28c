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

from hpc_train.preflight.inventory.inventory import Interface
from hpc_train.preflight.inventory.sysfs import Reader

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
_BY_MARK = {"bonding": "bond", "bridge": "bridge", "tun_flags": "tunnel", "vlan": "vlan"}


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
    for mark, kind in _BY_MARK.items():
        if mark in marks:
            return kind
    return "ethernet" if type_number == _TYPE_ETHERNET else "other"


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
    speed = reader.number(f"{base}/speed", required=False)
    return Interface(
        name=name,
        kind=kind_of(name, reader.number(f"{base}/type"), frozenset(marks)),
        index=reader.number(f"{base}/ifindex"),
        state=reader.text(f"{base}/operstate"),
        # -1 is the answer of virtual interfaces, which says nothing.
        speed_mbps=speed if speed is not None and speed > 0 else None,
        mtu=reader.number(f"{base}/mtu"),
        ipv4=tuple(ipv4),
        ipv6=tuple(ipv6),
    )


def _kernel_ipv4(names: list[str]) -> dict[str, list[str]]:
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name in names:
            request = struct.pack("256s", name.encode()[:15])
            try:
                address = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)[20:24]
                mask = fcntl.ioctl(sock.fileno(), _SIOCGIFNETMASK, request)[20:24]
            except OSError:
                continue  # EADDRNOTAVAIL: it has no IPv4 address
            prefix = int.from_bytes(mask, "big").bit_count()
            found[name] = [f"{socket.inet_ntoa(address)}/{prefix}"]
    return found


def _ipv6(reader: Reader) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (reader.text("/proc/net/if_inet6", required=False) or "").splitlines():
        fields = line.split()
        if len(fields) == 6 and len(fields[0]) == 32:
            address = ipaddress.IPv6Address(bytes.fromhex(fields[0]))
            found.setdefault(fields[5], []).append(f"{address}/{int(fields[2], 16)}")
    return found


def _proc_ipv4(reader: Reader) -> dict[str, list[str]]:
    on_link = _networks_on_link(reader)
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


def _networks_on_link(reader: Reader) -> list[tuple[str, ipaddress.IPv4Network]]:
    """Return (interface, network) for each line of /proc/net/route without a gateway."""
    found = []
    for line in (reader.text("/proc/net/route", required=False) or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) >= 8 and fields[2] == "00000000":
            network = socket.inet_ntoa(int(fields[1], 16).to_bytes(4, "little"))
            prefix = int(fields[7], 16).bit_count()
            found.append((fields[0], ipaddress.IPv4Network((network, prefix), strict=False)))
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
