"""What one node has, as data: filled on the node, read by choice, checks and verdict.

`None` means unknown everywhere: the file was absent, truncated or unreadable, and then its path
stands in `NodeInventory.unreadable` with the reason. Unknown is never read as healthy.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from hpc_train.codec import Document

# Kinds that may connect two nodes. Bridges and veth pairs named by container engines do not.
_BETWEEN_NODES = ("ipoib", "bond", "ethernet", "vlan")


@dataclass(frozen=True)
class Unreadable:
    """A path that should have told something and did not."""

    path: str  # path under the root, with a leading slash
    reason: str  # name of the errno (`EACCES`), or `empty`, `malformed`


@dataclass(frozen=True, kw_only=True)
class Gid:
    """One entry of a port's GID table."""

    index: int  # position in the table
    gid: str  # eight groups of four hex digits, as sysfs writes it
    type: str | None = None  # `IB/RoCE v1` or `RoCE v2`; None where the kernel does not say
    interface: str | None = None  # network interface of a RoCE GID, None on InfiniBand

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
    """One port of an HCA (/sys/class/infiniband/DEV/ports/N)."""

    number: int  # from 1
    state: str | None = None  # `ACTIVE`, `INIT`, `DOWN`, `ARMED`
    phys_state: str | None = None  # `LinkUp`, `Polling`, `Disabled`, `Sleep`
    rate_gbps: float | None = None  # signalling rate of the whole port in Gbit/s
    link_layer: str | None = None  # `InfiniBand` or `Ethernet` (RoCE)
    lid: int | None = None  # local identifier, 0 while there is none
    sm_lid: int | None = None  # LID of the subnet manager
    gids: tuple[Gid, ...] = ()  # non-empty entries of the GID table
    # Error counters by their sysfs name, values since boot
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def is_active(self) -> bool | None:
        """Whether NCCL would use it; None where the state is unknown."""
        return None if self.state is None else self.state == "ACTIVE"


@dataclass(frozen=True, kw_only=True)
class Hca:
    """A host channel adapter as the kernel names it."""

    name: str  # `mlx5_0`, or any other name the site gave it
    ports: tuple[Port, ...] = ()  # in order of their numbers
    pci_path: str | None = None  # path of the PCI device below /sys/devices, for distances
    numa: int | None = None  # NUMA node, -1 where the platform has none
    interfaces: tuple[str, ...] = ()  # names of the network interfaces on the same device
    is_bond: bool = False  # its interface is a bond or one leg of it
    model: str | None = None  # board (`MT4129`), where it is known


@dataclass(frozen=True, kw_only=True)
class Interface:
    """A network interface (/sys/class/net/I)."""

    name: str  # as the kernel has it
    # `ethernet`, `ipoib`, `bond`, `vlan`, `bridge`, `docker`, `virbr`, `veth`, `cni`, `tunnel`,
    # `loopback`, `other`
    kind: str
    index: int | None = None  # the kernel's number; NCCL walks interfaces in this order
    # Operstate: `up`, `down`, `unknown` (loopback and some drivers: usable), ...
    state: str | None = None
    speed_mbps: int | None = None  # link speed in Mbit/s, None where the driver does not say
    mtu: int | None = None  # bytes
    ipv4: tuple[str, ...] = ()  # `10.0.0.1/24` each
    ipv6: tuple[str, ...] = ()  # the same, link-local ones included

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
    """The way from a process to the HCAs."""

    devices: tuple[str, ...] = ()  # names in /dev/infiniband (`uverbs0`)
    openable: bool | None = None  # whether every uverbs device opens; None without devices
    library: bool | None = None  # whether libibverbs.so.1 loads
    # What lets an HCA reach GPU memory: `nvidia_peermem`, `memory_peers`, `dmabuf`
    gpudirect: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the step may use. Bytes; -1 is unlimited, None unknown."""

    memlock_bytes: int | None = None  # soft RLIMIT_MEMLOCK of this very process
    shm_total_bytes: int | None = None  # size of /dev/shm
    cpus: int | None = None  # CPUs this process may run on
    # CPUs' worth of time by the cgroup, None where there is no quota
    cpu_quota: float | None = None
    # The cgroup's limit, or the machine's memory if that is less
    memory_max_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU by NVML; None means the driver does not support the question."""

    index: int  # NVML's
    uuid: str = ""  # `GPU-...`
    model: str | None = None  # `NVIDIA H100 80GB HBM3`
    pci: str | None = None  # `0000:1b:00.0`
    memory_mib: int | None = None  # all of it
    used_mib: int | None = None  # in use now, by anybody
    # PIDs of compute processes on it, as far as they are visible from here
    processes: tuple[int, ...] = ()
    ecc_uncorrected: int | None = None  # uncorrected errors since the driver was loaded
    remap_pending: bool | None = None  # A row waits for a reset to be remapped
    remap_failed: bool | None = None  # A row could not be remapped
    recovery: str | None = None  # `none`, `reset`, `reboot`, `drain`, `drain-and-reset`
    nvlinks_up: int | None = None  # active NVLinks
    nvlinks_down: int | None = None  # NVLinks that exist on this card and are not active
    nearest_hca: str | None = None  # name of the HCA with the shortest PCI way
    distance: str | None = None  # that way as NCCL calls it: `PIX`, `PXB`, `PHB`, `NODE`, `SYS`

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
    """What a name meant on one node."""

    name: str  # the master's name
    addresses: tuple[str, ...] = ()  # sorted numeric addresses
    error: str | None = None  # why there are none
    seconds: float = 0.0  # how long the resolver took


@dataclass(frozen=True, kw_only=True)
class NodeInventory(Document):
    """Everything the preflight knows about one node before it talks to another one."""

    node: str  # name the scheduler uses (SLURMD_NODENAME), or the host name
    hostname: str  # the kernel's
    clock: Clock
    boot_id: str | None = None  # equal on two inventories of one running kernel
    hcas: tuple[Hca, ...] = ()  # in order of their PCI path, NCCL's own order
    interfaces: tuple[Interface, ...] = ()  # in order of their index
    verbs: Verbs = Verbs()  # device files, library, GPUDirect
    limits: Limits = Limits()  # of the step
    gpus: tuple[Gpu, ...] = ()  # by NVML, only those this step may use
    # What Slurm gave on this node, None without Slurm or without GPUs asked for
    gpus_expected: int | None = None
    nvml: str = "absent"  # `ok`, `absent` (no library or no driver), or NVML's error
    container: str | None = None  # `docker`, `apptainer`, ..., or None
    look_s: float = 0.0  # seconds that reading it all took
    resolution: Resolution | None = None  # what the master's name means here; filled by the probe
    unreadable: tuple[Unreadable, ...] = ()  # what could not be read, and why

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
