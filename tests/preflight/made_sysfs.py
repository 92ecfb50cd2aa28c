"""Makes the /sys, /proc and /dev of a node in a folder, healthy unless told otherwise.

`MadeNode(folder).write()` gives a tree that `look(folder, ...)` reads like a node. The cluster of
tests binds `folder/sys/class` over a node's own; `ibstat` of infiniband-diags reads the same tree.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

STATES = {"DOWN": "1: DOWN", "INIT": "2: INIT", "ARMED": "3: ARMED", "ACTIVE": "4: ACTIVE"}
PHYS = {
    "Sleep": "1: Sleep",
    "Polling": "2: Polling",
    "Disabled": "3: Disabled",
    "LinkUp": "5: LinkUp",
}
SPEEDS = {100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}
COUNTERS = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_xmit_discards",
    "port_xmit_data",
    "port_rcv_data",
)
ZERO_GID = ":".join(["0000"] * 8)


@dataclass(frozen=True)
class MadePort:
    number: int = 1
    state: str = "ACTIVE"
    phys: str = "LinkUp"
    rate: int = 400
    link_layer: str = "InfiniBand"
    lid: int = 17
    sm_lid: int = 1
    # (gid, type or None, interface or None); None is an entry that answers EINVAL (absent here)
    gids: tuple[tuple[str, str | None, str | None] | None, ...] = ()

    def down(self, phys: str = "Polling") -> MadePort:
        return replace(self, state="DOWN", phys=phys, lid=0, sm_lid=0)


@dataclass(frozen=True)
class MadeHca:
    name: str = "mlx5_0"
    ports: tuple[MadePort, ...] = (MadePort(),)
    pci: str = "pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0/0000:19:00.0"
    numa: int = 0
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class MadeInterface:
    name: str
    index: int
    address: str | None = None  # 10.0.0.1/24
    type: int = 1
    state: str = "up"
    speed: int | None = 10_000
    mtu: int = 1500
    marks: tuple[str, ...] = ()  # bridge, bonding, tun_flags
    master: str | None = None


def ib_gid(index: int) -> str:
    return f"fe80:0000:0000:0000:0c42:a103:00{index:02x}:0001"


def roce_gids(
    address: str, interface: str, *, v2_index: int = 3
) -> tuple[tuple[str, str | None, str | None] | None, ...]:
    """A RoCE port's table: link-local v1 and v2, then IPv4 v1 and v2, the last at `v2_index`."""
    a, b, c, d = address.split(".")
    mapped = "0000:" * 5 + f"ffff:{int(a):02x}{int(b):02x}:{int(c):02x}{int(d):02x}"
    local = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"
    table: list[tuple[str, str | None, str | None] | None] = [
        (local, "IB/RoCE v1", interface),
        (local, "RoCE v2", interface),
    ]
    while len(table) < v2_index - 1:
        table.append(None)
    table += [(mapped, "IB/RoCE v1", interface), (mapped, "RoCE v2", interface)]
    return tuple(table)


@dataclass(frozen=True)
class MadeNode:
    """A node: by default two NDR ports, IPoIB, Ethernet, unlimited memlock, verbs, GPUDirect."""

    name: str = "node1"
    number: int = 1
    hcas: tuple[MadeHca, ...] = ()
    interfaces: tuple[MadeInterface, ...] = ()
    memlock: str = "unlimited"
    verbs: bool = True
    library: bool = True
    gpudirect: bool = True
    uptime_s: float = 1000.0
    extra: dict[str, str] = field(default_factory=dict)

    def write(self, root: Path) -> Path:
        for hca in self.hcas:
            _write_hca(root, hca)
        for interface in self.interfaces:
            _write_interface(root, interface)
        (root / "sys/class/infiniband").mkdir(parents=True, exist_ok=True)
        (root / "sys/class/net").mkdir(parents=True, exist_ok=True)
        _write_proc(root, self)
        _write_verbs(root, self)
        for path, text in self.extra.items():
            _put(root / path, text)
        return root

    def hca(self, name: str, **changes: object) -> MadeNode:
        """The node with one HCA changed."""
        return replace(
            self,
            hcas=tuple(replace(h, **changes) if h.name == name else h for h in self.hcas),  # type: ignore[arg-type]
        )

    def port(self, name: str, **changes: object) -> MadeNode:
        """The node with the first port of one HCA changed."""
        (hca,) = [h for h in self.hcas if h.name == name]
        port = replace(hca.ports[0], **changes)  # type: ignore[arg-type]
        return self.hca(name, ports=(port, *hca.ports[1:]))

    def interface(self, name: str, **changes: object) -> MadeNode:
        """The node with one interface changed."""
        kept = tuple(replace(i, **changes) if i.name == name else i for i in self.interfaces)  # type: ignore[arg-type]
        return replace(self, interfaces=kept)

    def plus(self, *items: MadeHca | MadeInterface) -> MadeNode:
        """The node with more HCAs or interfaces."""
        return replace(
            self,
            hcas=self.hcas + tuple(i for i in items if isinstance(i, MadeHca)),
            interfaces=self.interfaces + tuple(i for i in items if isinstance(i, MadeInterface)),
        )

    def without_hcas(self) -> MadeNode:
        return replace(self, hcas=(), verbs=False)


def ib_node(number: int = 1, hcas: int = 2, *, rate: int = 400) -> MadeNode:
    """A healthy InfiniBand node: `hcas` HCAs, ib0 on the first, eth0 beside, lo."""
    return MadeNode(
        name=f"node{number}",
        number=number,
        hcas=tuple(
            MadeHca(
                f"mlx5_{i}",
                (MadePort(rate=rate, lid=number * 16 + i, gids=((ib_gid(number), None, None),)),),
                pci=f"pci0000:{0x16 + i:02x}/0000:{0x16 + i:02x}:01.0/0000:{0x40 + i:02x}:00.0",
                interfaces=(f"ib{i}",),
            )
            for i in range(hcas)
        ),
        interfaces=(
            MadeInterface("lo", 1, "127.0.0.1/8", type=772, state="unknown", speed=None, mtu=65536),
            MadeInterface("eth0", 2, f"10.0.0.{number}/24"),
            MadeInterface("ib0", 3, f"10.1.0.{number}/24", type=32, speed=400_000, mtu=4092),
        ),
    )


def roce_node(
    number: int = 1, hcas: int = 2, *, v2_index: int = 3, rails: bool = False
) -> MadeNode:
    """A healthy RoCE node: each HCA has an Ethernet interface with an address of its own."""
    made = []
    interfaces = [
        MadeInterface("lo", 1, "127.0.0.1/8", type=772, state="unknown", speed=None, mtu=65536),
        MadeInterface("eth0", 2, f"10.0.0.{number}/24"),
    ]
    for i in range(hcas):
        address = f"10.{2 + (i if rails else 0)}.{0 if rails else i}.{number}"
        gids = roce_gids(address, f"rdma{i}", v2_index=v2_index)
        port = MadePort(rate=400, link_layer="Ethernet", lid=0, sm_lid=0, gids=gids)
        pci = f"pci0000:{0x16 + i:02x}/0000:{0x16 + i:02x}:01.0/0000:{0x40 + i:02x}:00.0"
        made.append(MadeHca(f"mlx5_{i}", (port,), pci=pci, interfaces=(f"rdma{i}",)))
        prefix = 24 if rails else 16
        interfaces.append(
            MadeInterface(f"rdma{i}", 3 + i, f"{address}/{prefix}", speed=400_000, mtu=9000)
        )
    return MadeNode(f"node{number}", number, tuple(made), tuple(interfaces))


def tcp_node(number: int = 1) -> MadeNode:
    """A node without InfiniBand."""
    node = ib_node(number).without_hcas()
    return replace(node, interfaces=node.interfaces[:2], library=False, gpudirect=False)


def bond_hca(number: int = 1) -> tuple[MadeHca, MadeInterface]:
    """An Ethernet HCA in a bond, as storage and management have it."""
    gids = roce_gids(f"10.9.0.{number}", "bond0")
    port = MadePort(rate=100, link_layer="Ethernet", lid=0, sm_lid=0, gids=gids)
    pci = "pci0000:80/0000:80:01.0/0000:81:00.0"
    hca = MadeHca("mlx5_bond_0", (port,), pci=pci, numa=1, interfaces=("bond0",))
    bond = MadeInterface(
        "bond0", 9, f"10.9.0.{number}/24", speed=100_000, mtu=9000, marks=("bonding",)
    )
    return hca, bond


def docker0(index: int = 1) -> MadeInterface:
    """Docker's bridge, up, with a lower index than the real interfaces."""
    return MadeInterface("docker0", index, "172.17.0.1/16", speed=10_000, marks=("bridge",))


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def _write_hca(root: Path, hca: MadeHca) -> None:
    base = root / "sys/class/infiniband" / hca.name
    device = root / "sys/devices" / hca.pci
    device.mkdir(parents=True, exist_ok=True)
    base.mkdir(parents=True)

    (base / "device").symlink_to(f"../../../devices/{hca.pci}")
    _put(device / "numa_node", str(hca.numa))
    _put(base / "hca_type", "MT4129")
    _put(base / "node_type", "1: CA")
    _put(base / "fw_ver", "28.39.1002")
    _put(base / "hw_rev", "0x0")
    _put(base / "node_guid", "0c42:a103:0012:3456")
    _put(base / "sys_image_guid", "0c42:a103:0012:3456")
    for interface in hca.interfaces:
        (device / "net" / interface).mkdir(parents=True, exist_ok=True)
    for port in hca.ports:
        _write_port(base / "ports" / str(port.number), port)


def _write_port(base: Path, port: MadePort) -> None:
    _put(base / "state", STATES[port.state])
    _put(base / "phys_state", PHYS[port.phys])
    _put(base / "rate", f"{port.rate} Gb/sec (4X {SPEEDS.get(port.rate, 'QDR')})")
    _put(base / "link_layer", port.link_layer)
    _put(base / "lid", hex(port.lid))
    _put(base / "lid_mask_count", "0")
    _put(base / "sm_lid", hex(port.sm_lid))
    _put(base / "sm_sl", "0")
    _put(base / "cap_mask", "0xa651e848")
    for index, entry in enumerate(port.gids):
        if entry is None:
            continue
        gid, kind, interface = entry
        _put(base / "gids" / str(index), gid)
        if kind:
            _put(base / "gid_attrs/types" / str(index), kind)
        if interface:
            _put(base / "gid_attrs/ndevs" / str(index), interface)
    _put(base / "gids" / str(len(port.gids)), ZERO_GID)
    for counter in COUNTERS:
        _put(base / "counters" / counter, "0")


def _write_interface(root: Path, interface: MadeInterface) -> None:
    base = root / "sys/class/net" / interface.name
    _put(base / "type", str(interface.type))
    _put(base / "ifindex", str(interface.index))
    _put(base / "operstate", interface.state)
    _put(base / "mtu", str(interface.mtu))
    _put(base / "address", f"02:00:00:00:00:{interface.index:02x}")
    for counter in ("rx_bytes", "tx_bytes"):
        _put(base / "statistics" / counter, "0")
    if interface.speed is not None:
        _put(base / "speed", str(interface.speed))
    for mark in interface.marks:
        (base / mark).mkdir()
    if interface.master:
        (base / "master").symlink_to(f"../{interface.master}")


def _hex(address: ipaddress.IPv4Address) -> str:
    return f"{struct.unpack('<I', address.packed)[0]:08X}"


def _write_proc(root: Path, node: MadeNode) -> None:
    routes = ["Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT"]
    trie = ["Main:", "  +-- 0.0.0.0/0 3 0 5", "Local:", "  +-- 0.0.0.0/0 3 0 5"]
    for interface in node.interfaces:
        if interface.address is None:
            continue
        address = ipaddress.ip_interface(interface.address)
        network = address.network
        if not address.is_loopback:
            mask = _hex(ipaddress.IPv4Address(int(network.netmask)))
            where = _hex(ipaddress.IPv4Address(int(network.network_address)))
            routes.append(f"{interface.name}\t{where}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0")
        trie += [f"        |-- {address.ip}", "           /32 host LOCAL"]
    _put(root / "proc/net/route", "\n".join(routes))
    _put(root / "proc/net/fib_trie", "\n".join(trie))
    _put(
        root / "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max stack size            8388608              unlimited            bytes     \n"
        f"Max locked memory         {node.memlock:<20} {node.memlock:<20} bytes     ",
    )
    _put(root / "proc/self/status", "Name:\tpython\nCpus_allowed_list:\t0-3,8-11")
    _put(root / "proc/self/cgroup", "0::/slice/job")
    _put(root / "proc/meminfo", "MemTotal:       263734272 kB\nMemAvailable:   200000000 kB")
    _put(root / "proc/uptime", f"{node.uptime_s} 0.0")
    _put(root / "proc/sys/kernel/hostname", node.name)
    _put(root / "proc/sys/kernel/random/boot_id", f"00000000-0000-0000-0000-{node.number:012d}")


def _write_verbs(root: Path, node: MadeNode) -> None:
    (root / "dev/shm").mkdir(parents=True, exist_ok=True)
    if node.verbs and node.hcas:
        for i in range(len(node.hcas)):
            _put(root / f"dev/infiniband/uverbs{i}", "")
    if node.library:
        _put(root / "usr/lib/x86_64-linux-gnu/libibverbs.so.1", "")
    if node.gpudirect:
        _put(root / "sys/module/nvidia_peermem/version", "535.1")
