"""What one node has, as data: filled on the node, read by choice, checks and verdict.

`None` means unknown everywhere: the file was absent, truncated or unreadable, and then its path
stands in `NodeInventory.unreadable` with the reason. Unknown is never read as healthy.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from hpc_train.codec import Document

__all__ = [
    "Clock",
    "Gid",
    "Gpu",
    "Hca",
    "Interface",
    "Limits",
    "NodeInventory",
    "Port",
    "Resolution",
    "Unreadable",
    "Verbs",
]

# Kinds that may connect two nodes. Bridges and veth pairs named by container engines do not.
_BETWEEN_NODES = ("ipoib", "bond", "ethernet", "vlan")


@dataclass(frozen=True)
class Unreadable:
    """A path that should have told something and did not.

    Attributes:
        path: Path under the root, with a leading slash.
        reason: Name of the errno (`EACCES`), or `empty`, `malformed`.
    """

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Gid:
    """One entry of a port's GID table.

    Attributes:
        index: Position in the table.
        gid: Eight groups of four hex digits, as sysfs writes it.
        type: `IB/RoCE v1` or `RoCE v2`; None where the kernel does not say.
        interface: Network interface of a RoCE GID, None on InfiniBand.
    """

    index: int
    gid: str
    type: str | None = None
    interface: str | None = None

    @property
    def is_link_local(self) -> bool:
        """True for fe80::/10: normal on InfiniBand, not routable on RoCE."""
        return self.gid[:3].lower() in ("fe8", "fe9", "fea", "feb")

    @property
    def is_ipv4(self) -> bool:
        """True for an IPv4-mapped GID (::ffff:a.b.c.d)."""
        return self.gid.lower().startswith("0000:0000:0000:0000:0000:ffff:")

    @property
    def subnet_prefix(self) -> str:
        """The first 64 bits, which the subnet manager gives."""
        return self.gid[:19]


@dataclass(frozen=True, kw_only=True)
class Port:
    """One port of an HCA (/sys/class/infiniband/DEV/ports/N).

    Attributes:
        number: From 1.
        state: `ACTIVE`, `INIT`, `DOWN`, `ARMED`.
        phys_state: `LinkUp`, `Polling`, `Disabled`, `Sleep`.
        rate_gbps: Signalling rate of the whole port in Gbit/s.
        link_layer: `InfiniBand` or `Ethernet` (RoCE).
        lid: Local identifier, 0 while there is none.
        sm_lid: LID of the subnet manager.
        gids: Non-empty entries of the GID table.
        counters: Error counters by their sysfs name, values since boot.
    """

    number: int
    state: str | None = None
    phys_state: str | None = None
    rate_gbps: float | None = None
    link_layer: str | None = None
    lid: int | None = None
    sm_lid: int | None = None
    gids: tuple[Gid, ...] = ()
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def is_active(self) -> bool | None:
        """Whether NCCL would use it; None where the state is unknown."""
        return None if self.state is None else self.state == "ACTIVE"


@dataclass(frozen=True, kw_only=True)
class Hca:
    """A host channel adapter as the kernel names it.

    Attributes:
        name: `mlx5_0`, or any other name the site gave it.
        ports: In order of their numbers.
        pci_path: Path of the PCI device below /sys/devices, for distances.
        numa: NUMA node, -1 where the platform has none.
        interfaces: Names of the network interfaces on the same device.
        is_bond: Its interface is a bond or one leg of it.
        model: Board (`MT4129`), where it is known.
    """

    name: str
    ports: tuple[Port, ...] = ()
    pci_path: str | None = None
    numa: int | None = None
    interfaces: tuple[str, ...] = ()
    is_bond: bool = False
    model: str | None = None


@dataclass(frozen=True, kw_only=True)
class Interface:
    """A network interface (/sys/class/net/I).

    Attributes:
        name: As the kernel has it.
        kind: `ethernet`, `ipoib`, `bond`, `vlan`, `bridge`, `docker`, `virbr`, `veth`, `cni`,
            `tunnel`, `loopback`, `other`.
        index: The kernel's number; NCCL walks interfaces in this order.
        state: operstate: `up`, `down`, `unknown` (loopback and some drivers: usable), ...
        speed_mbps: Link speed in Mbit/s, None where the driver does not say.
        mtu: Bytes.
        ipv4: `10.0.0.1/24` each.
        ipv6: The same, link-local ones included.
    """

    name: str
    kind: str
    index: int | None = None
    state: str | None = None
    speed_mbps: int | None = None
    mtu: int | None = None
    ipv4: tuple[str, ...] = ()
    ipv6: tuple[str, ...] = ()

    @property
    def is_up(self) -> bool:
        """Whether the kernel holds it to be up; drivers that do not tell say `unknown`."""
        return self.state in ("up", "unknown")

    @property
    def is_ready(self) -> bool:
        """Whether it is up and has an address."""
        return self.is_up and bool(self.ipv4 or self.ipv6)

    @property
    def is_between_nodes(self) -> bool:
        """Whether it is of a kind that may connect two nodes."""
        return self.kind in _BETWEEN_NODES

    @property
    def routable(self) -> list[str]:
        """Addresses with their prefixes that are not link-local, IPv4 first."""
        addresses = self.ipv4 + self.ipv6
        return [text for text in addresses if not ipaddress.ip_interface(text).is_link_local]

    @property
    def networks(self) -> set[str]:
        """The subnets of all its addresses."""
        return {str(ipaddress.ip_interface(text).network) for text in self.ipv4 + self.ipv6}


@dataclass(frozen=True, kw_only=True)
class Verbs:
    """The way from a process to the HCAs.

    Attributes:
        devices: Names in /dev/infiniband (`uverbs0`).
        openable: Whether every uverbs device opens; None without devices.
        library: Whether libibverbs.so.1 loads.
        gpudirect: What lets an HCA reach GPU memory: `nvidia_peermem`, `memory_peers`, `dmabuf`.
    """

    devices: tuple[str, ...] = ()
    openable: bool | None = None
    library: bool | None = None
    gpudirect: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the step may use. Bytes; -1 is unlimited, None unknown.

    Attributes:
        memlock_bytes: Soft RLIMIT_MEMLOCK of this very process.
        shm_total_bytes: Size of /dev/shm.
        cpus: CPUs this process may run on.
        cpu_quota: CPUs' worth of time by the cgroup, None where there is no quota.
        memory_max_bytes: The cgroup's limit, or the machine's memory if that is less.
    """

    memlock_bytes: int | None = None
    shm_total_bytes: int | None = None
    cpus: int | None = None
    cpu_quota: float | None = None
    memory_max_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU by NVML; None means the driver does not support the question.

    Attributes:
        index: NVML's.
        uuid: `GPU-...`.
        model: `NVIDIA H100 80GB HBM3`.
        pci: `0000:1b:00.0`.
        memory_mib: All of it.
        used_mib: In use now, by anybody.
        processes: PIDs of compute processes on it, as far as they are visible from here.
        ecc_uncorrected: Uncorrected errors since the driver was loaded.
        remap_pending: A row waits for a reset to be remapped.
        remap_failed: A row could not be remapped.
        recovery: `none`, `reset`, `reboot`, `drain`, `drain-and-reset`.
        nvlinks_up: Active NVLinks.
        nvlinks_down: NVLinks that exist on this card and are not active.
        nearest_hca: Name of the HCA with the shortest PCI way.
        distance: That way as NCCL calls it: `PIX`, `PXB`, `PHB`, `NODE`, `SYS`.
    """

    index: int
    uuid: str = ""
    model: str | None = None
    pci: str | None = None
    memory_mib: int | None = None
    used_mib: int | None = None
    processes: tuple[int, ...] = ()
    ecc_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    recovery: str | None = None
    nvlinks_up: int | None = None
    nvlinks_down: int | None = None
    nearest_hca: str | None = None
    distance: str | None = None

    @property
    def label(self) -> str:
        """Its name in a finding."""
        return f"gpu {self.index}"


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The node's clock when the inventory was taken, in seconds since the epoch."""

    unix_s: float


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """What a name meant on one node.

    Attributes:
        name: The master's name.
        addresses: Sorted numeric addresses.
        error: Why there are none.
        seconds: How long the resolver took.
    """

    name: str
    addresses: tuple[str, ...] = ()
    error: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class NodeInventory(Document):
    """Everything the preflight knows about one node before it talks to another one.

    Attributes:
        node: Name the scheduler uses (SLURMD_NODENAME), or the host name.
        hostname: The kernel's.
        boot_id: Equal on two inventories of one running kernel.
        hcas: In order of their PCI path, NCCL's own order.
        interfaces: In order of their index.
        verbs: Device files, library, GPUDirect.
        limits: Of the step.
        gpus: By NVML, only those this step may use.
        gpus_expected: What Slurm gave on this node, None without Slurm or without GPUs asked for.
        nvml: `ok`, `absent` (no library or no driver), or NVML's error.
        container: `docker`, `apptainer`, ..., or None.
        look_s: Seconds that reading it all took.
        resolution: What the master's name means here; filled by the probe.
        unreadable: What could not be read, and why.
    """

    node: str
    hostname: str
    clock: Clock
    boot_id: str | None = None
    hcas: tuple[Hca, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    verbs: Verbs = Verbs()
    limits: Limits = Limits()
    gpus: tuple[Gpu, ...] = ()
    gpus_expected: int | None = None
    nvml: str = "absent"
    container: str | None = None
    look_s: float = 0.0
    resolution: Resolution | None = None
    unreadable: tuple[Unreadable, ...] = ()

    def hca(self, name: str) -> Hca | None:
        """Return the HCA of that name, or None."""
        return next((hca for hca in self.hcas if hca.name == name), None)

    def interface(self, name: str) -> Interface | None:
        """Return the interface of that name, or None."""
        return next((item for item in self.interfaces if item.name == name), None)

    def counters(self) -> dict[str, int]:
        """Return all error counters as `mlx5_0:1/symbol_error -> value`."""
        return {
            f"{hca.name}:{port.number}/{name}": value
            for hca in self.hcas
            for port in hca.ports
            for name, value in port.counters.items()
        }
