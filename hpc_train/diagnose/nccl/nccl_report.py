"""What logs of NCCL say, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hpc_train.diagnose.nccl.nccl_comms import LoggedRanks
    from hpc_train.diagnose.rules import Failure


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The way from one rank to another; a host is None where the log does not tell it.

    Attributes:
        transport: `NET/IB`, `NET/AWS Libfabric`, `NET/Socket`, `P2P/CUMEM`, `SHM/direct`, ...
        devices: HCAs or interfaces used, by name where the log tells it.
        channels: Channels that were seen; a whole file tells of one, as they differ in nothing.
        gdr_channels: How many of them use GPUDirect RDMA.
    """

    a: int
    b: int
    host_a: str | None
    host_b: str | None
    transport: str
    devices: tuple[str, ...] = ()
    channels: int = 1
    gdr_channels: int = 0

    @property
    def crosses(self) -> bool:
        """Whether it leaves a node; a NET way between unknown hosts does."""
        if self.host_a is None or self.host_b is None:
            return self.transport.startswith("NET/")
        return self.host_a != self.host_b

    @property
    def is_ib(self) -> bool:
        """Whether it is InfiniBand or RoCE, by NCCL itself or any plugin of that name."""
        return self.transport.startswith("NET/IB")

    @property
    def is_tcp(self) -> bool:
        """Whether it is plain sockets (`NET/Socket`, Google's `NET/FastSocket`)."""
        return self.transport.startswith("NET/") and self.transport.endswith("Socket")


@dataclass(frozen=True, kw_only=True)
class NcclReport:
    """What was found and used, and what failed.

    Attributes:
        world: The largest communicator, as far as it is in the log.
        version: `2.21.5`, None where the log does not tell, or tells several.
        library: `NCCL`, or AMD's `RCCL`.
        speakers: Hosts that wrote a line.
        networks: Networks NCCL named at start: FOUND, not used.
        interfaces: host -> `name:address` of bootstrap and sockets, the bootstrap's first.
        gdr: host -> HCA -> whether GPUDirect RDMA is there; why not in `gdr_reasons`.
        failures: Root first; what follows from another one is left out.
        notes: Worth telling, no failure.
        warnings: What no rule explains; `dropped` further ones were only counted.
        records: Lines that were NCCL's or torch's; `torn` of them were cut or mixed.
    """

    world: LoggedRanks
    version: str | None = None
    library: str = "NCCL"
    speakers: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    hcas: dict[str, tuple[str, ...]] = field(default_factory=dict)
    interfaces: dict[str, tuple[str, ...]] = field(default_factory=dict)
    gdr: dict[str, dict[str, bool]] = field(default_factory=dict)
    gdr_reasons: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    notes: tuple[Failure, ...] = ()
    warnings: tuple[Failure, ...] = ()
    dropped: int = 0
    records: int = 0
    torn: int = 0

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts that wrote a line, and those of ranks."""
        return tuple(sorted({*self.world.places.values(), *self.speakers} - {""}))

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Every way between two ranks."""
        return self.world.pairs

    @property
    def crossing(self) -> tuple[Pair, ...]:
        """Ways between two nodes."""
        return tuple(pair for pair in self.pairs if pair.crosses)

    @property
    def sockets(self) -> dict[str, str]:
        """Interface of the bootstrap, by host."""
        return {
            host: names[0].partition(":")[0] for host, names in self.interfaces.items() if names
        }

    @property
    def rings_complete(self) -> bool | None:
        """Whether every ring is closed; None where the log does not hold them all."""
        return self.world.rings_complete

    @property
    def all_over_ib(self) -> bool | None:
        """Whether every way between nodes is InfiniBand or RoCE; None where none leaves a node."""
        return all(pair.is_ib for pair in self.crossing) if self.crossing else None

    @property
    def gdr_share(self) -> Literal["all", "some", "none"] | None:
        """How much of it uses GPUDirect RDMA; None where there is no NET way but TCP."""
        ways = [
            pair for pair in self.crossing if pair.transport.startswith("NET/") and not pair.is_tcp
        ]
        if not ways:
            return None
        if all(pair.gdr_channels == pair.channels for pair in ways):
            return "all"
        return "some" if any(pair.gdr_channels for pair in ways) else "none"
