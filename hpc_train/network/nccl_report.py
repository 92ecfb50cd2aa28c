"""What a log of NCCL says, as data and in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NcclReport", "Pair", "RankPlace", "explain"]


@dataclass(frozen=True, kw_only=True)
class RankPlace:
    """Where a rank ran."""

    rank: int
    host: str
    pid: int


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The way from one rank to another.

    Attributes:
        a: Sending rank.
        b: Receiving rank.
        host_a: Its host, None where the log does not tell.
        host_b: The other one's.
        transport: `NET/IB`, `NET/IBext_v8`, `NET/Socket`, `P2P/CUMEM`, `SHM/direct`, ...
        devices: HCAs or interfaces used, by name where the log tells it.
        channels: Lines that say so.
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


@dataclass(frozen=True, kw_only=True)
class NcclReport:
    """What was really used.

    Attributes:
        version: `2.21.5`, None where the log does not tell.
        ranks: Size of the largest communicator.
        places: Ranks and their hosts.
        pairs: Every way between two ranks.
        networks: Networks NCCL named at start: FOUND, not used.
        hcas: host -> HCAs NCCL found there.
        sockets: host -> interface of the bootstrap.
        ranks_complete: Ranks that finished their initialisation.
        rings_complete: Whether every ring is closed; None where the log has none.
        gdr_supported: Whether NCCL said GPUDirect RDMA is there; None where it said nothing.
        warnings: (host: text, times).
        completions: (host, peer, status, hca, times) of failed completions.
        records: Records of NCCL's in the log.
        torn: Records that were cut or mixed with another one.
    """

    version: str | None = None
    ranks: int = 0
    places: tuple[RankPlace, ...] = ()
    pairs: tuple[Pair, ...] = ()
    networks: tuple[str, ...] = ()
    hcas: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sockets: dict[str, str] = field(default_factory=dict)
    ranks_complete: int = 0
    rings_complete: bool | None = None
    gdr_supported: bool | None = None
    warnings: tuple[tuple[str, int], ...] = ()
    completions: tuple[tuple[str, str, str, str, int], ...] = ()
    records: int = 0
    torn: int = 0

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts that spoke, sorted."""
        return tuple(sorted({place.host for place in self.places}))

    @property
    def crossing(self) -> tuple[Pair, ...]:
        """Ways between two nodes."""
        return tuple(pair for pair in self.pairs if pair.crosses)

    @property
    def all_over_ib(self) -> bool | None:
        """Whether every way between nodes is InfiniBand or RoCE; None where none leaves a node."""
        return all(pair.is_ib for pair in self.crossing) if self.crossing else None

    @property
    def all_gdr(self) -> bool | None:
        """Whether all of it uses GPUDirect RDMA; None where no way is InfiniBand."""
        ways = [pair for pair in self.crossing if pair.is_ib]
        return all(pair.gdr_channels == pair.channels for pair in ways) if ways else None


def explain(report: NcclReport) -> list[str]:
    """Return the report in lines for a reader, the conclusion first."""
    return [*_conclusion(report), *_details(report), *_troubles(report)]


def _conclusion(report: NcclReport) -> Iterator[str]:
    hosts = len(report.hosts)
    if not report.pairs:
        yield "NCCL did not get as far as connecting two ranks"
    elif not report.crossing:
        yield f"all ranks are on {'one node' if hosts <= 1 else 'their own nodes'}: the network"
        yield "between nodes was not used, so this log proves nothing about it"
    elif report.all_over_ib:
        gdr = "with GPUDirect RDMA" if report.all_gdr else "NOT all of it with GPUDirect RDMA"
        yield f"InfiniBand (or RoCE) between all nodes that talked, {gdr}"
    else:
        slow = [pair for pair in report.crossing if not pair.is_ib]
        kinds = ", ".join(sorted({pair.transport for pair in slow}))
        yield f"{len(slow)} of {len(report.crossing)} ways between nodes use {kinds}"
        if any(name.startswith("IB") for name in report.networks):
            yield "although NCCL found InfiniBand"


def _details(report: NcclReport) -> Iterator[str]:
    yield f"NCCL {report.version or 'of unknown version'}, {report.ranks} ranks on " + (
        f"{len(report.hosts)} hosts" if len(report.hosts) != 1 else f"host {report.hosts[0]}"
    )
    if report.rings_complete is not None:
        yield f"rings: {'closed' if report.rings_complete else 'NOT closed'}"
    if report.ranks_complete < report.ranks:
        yield f"only {report.ranks_complete} of {report.ranks} ranks finished their initialisation"
    ways = Counter((pair.transport, pair.crosses) for pair in report.pairs)
    for (transport, crosses), count in sorted(ways.items()):
        yield f"{count} {'between nodes' if crosses else 'inside a node'} via {transport}"
    for host, names in report.hcas.items():
        used = {
            name for p in report.crossing if p.host_a == host or p.host_b == host
            for name in p.devices
        }  # fmt: skip
        unused = [name for name in names if name not in used]
        yield f"{host} found {', '.join(names)}" + (
            f"; not used: {', '.join(unused)}" if used and unused else ""
        )
    for host, name in report.sockets.items():
        yield f"{host} bootstraps over {name}"


def _troubles(report: NcclReport) -> Iterator[str]:
    for host, peer, status, hca, times in report.completions:
        yield (
            f"{times} completion error{'s'[: times > 1]} on {host}: peer {peer} status {status}"
            f"{f' hca {hca}' if hca else ''} (an end point, not yet the culprit: test both nodes"
            " against others)"
        )
    for text, times in report.warnings:
        yield f"warning{f' ({times} times)' if times > 1 else ''}: {text}"
    if report.torn:
        yield f"{report.torn} of {report.records} records are torn or mixed and were passed over"
