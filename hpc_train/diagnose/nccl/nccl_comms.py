"""Communicators of a log: which ranks they have, where, and which way each pair goes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.diagnose.nccl.nccl_report import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpc_train.diagnose.nccl.nccl_lines import Record

_MAX_HOPS = 500_000
_MAX_COMMS = 20_000
_MAX_THREADS = 200_000

# The name of a plugin is its own: `NET/IB/0`, `NET/AWS Libfabric/0/GDRDMA`, `NET/IBext_v8/0(46)`.
_HOP = re.compile(
    r"(?:Ring|Channel) \d+(?:/\d+)? : (?P<a>\d+)(?:\[[^\]]*\])? -> (?P<b>\d+)(?:\[[^\]]*\])?"
    r"(?: \[(?P<way>send|receive)\])? via "
    r"(?:(?P<net>(?:NET|COLLNET)/[\w+.-][\w +.-]{0,60})/(?P<device>\d+)"
    r"|(?P<local>P2P/(?:IPC|CUMEM|MNNVL|direct|indirect)|SHM/(?:direct|CE)|(?:P2P|SHM)(?!/)|direct)"
    r"(?!\w))(?P<rest>\S*)"
)
_RING = re.compile(r"Ring (\d+) : (\d+) -> (\d+) -> (\d+)")
_ORDER = re.compile(r"(?:Channel|Ring) \d+(?:/\d+)? ?:(?: +\d+)+$")
# "Init START" is there from 2.17, commId as well; a split of 2.23 and later has a color instead.
# A line that ends before its " - " is cut: its numbers may be parts of some.
_COMM = re.compile(
    r"comm 0x[0-9a-f]+ rank (?P<rank>\d+) n[rR]anks (?P<ranks>\d+)"
    r"(?: nNodes (?P<nodes>\d+) |(?=.{0,300} - ))"
    r"(?:.{0,200}?(?P<id>commId 0x[0-9a-f]+|color -?\d+))?"
)

CommKey = tuple[int, str]
Thread = tuple[str, str, str]


class _Hop(NamedTuple):
    a: int
    b: int
    transport: str
    device: str
    is_gdr: bool


@dataclass
class _Comm:
    """What is known of one communicator.

    `ended` are ranks whose beginning the log lacks. `is_mixed` where several share a key (before
    commId), so that a rank has no one place.
    """

    places: dict[int, str] = field(default_factory=dict)
    hops: Counter[_Hop] = field(default_factory=Counter)
    rings: dict[int, dict[int, int]] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    nodes: int = 0
    is_mixed: bool = False

    def put(self, rank: int, host: str) -> None:
        self.is_mixed = self.is_mixed or self.places.get(rank, host) != host
        self.places[rank] = host

    def add(self, other: _Comm) -> None:
        self.hops.update(other.hops)
        for rank, host in other.places.items():
            self.put(rank, host)
        for channel, ring in other.rings.items():
            self.rings.setdefault(channel, {}).update(ring)


@dataclass(frozen=True, kw_only=True)
class LoggedRanks:
    """The largest communicator, as far as the log holds it.

    Attributes:
        ranks: Its size by NCCL's own words, as `nodes`; 0 where they are missing.
        groups: Communicators of that size.
        places: rank -> its host.
        complete: Ranks that finished their initialisation, of those `started`.
        rings_complete: None where a rank is missing, or no ring was written.
    """

    ranks: int = 0
    nodes: int = 0
    groups: int = 0
    places: dict[int, str] = field(default_factory=dict)
    pairs: tuple[Pair, ...] = ()
    complete: int = 0
    started: int = 0
    rings_complete: bool | None = None


class Communicators:
    """Takes the records about communicators, channels and rings."""

    def __init__(self) -> None:
        self.torn = 0
        self.speakers: set[int] = set()
        self._comms: dict[CommKey, _Comm] = {}
        # Between START and COMPLETE a thread speaks of one communicator alone.
        self._current: dict[Thread, CommKey] = {}
        # Before 2.17 the first word about the communicator is the last one, COMPLETE.
        self._pending: dict[Thread, _Comm] = {}
        self._of_process: dict[tuple[str, str], list[tuple[CommKey, int]]] = {}
        self._elsewhere = _Comm()

    def take(self, record: Record, devices: dict[str, str]) -> bool:
        """Take a record; returns whether it was about a communicator."""
        text = record.text
        if text.startswith(("Channel", "Ring")):
            if " via " in text:
                self._hop(record, devices)
            else:
                self._ring(record)
            return True
        if "comm 0x" in text and (found := _COMM.search(text)):
            self._joins(record, found)
            return True
        if "Connected all rings" in text:
            if key := self._current.get((record.host, record.pid, record.tid)):
                self._complete(record, key)
            return True
        return False

    def _joins(self, record: Record, found: re.Match[str]) -> None:
        if "Destroy COMPLETE" in record.text or "Abort COMPLETE" in record.text:
            self._ends(record, int(found["rank"]), int(found["ranks"]))
            return
        thread = (record.host, record.pid, record.tid)
        rank = int(found["rank"])
        if found["nodes"] and thread in self._current:
            self._comm(self._current[thread]).nodes = int(found["nodes"])
            return
        key = (int(found["ranks"]), found["id"] or "")
        comm = self._comm(key)
        comm.nodes = int(found["nodes"] or comm.nodes)
        comm.put(rank, record.host)
        mine = self._of_process.setdefault((record.host, record.pid), [])
        if (key, rank) not in mine and len(mine) < 100:
            mine.append((key, rank))
        if before := self._pending.pop(thread, None):
            comm.add(before)
        if "Init COMPLETE" in record.text:
            comm.complete.add(rank)
            self._current.pop(thread, None)
        elif len(self._current) < _MAX_THREADS:
            self._current[thread] = key

    def _ends(self, record: Record, rank: int, ranks: int) -> None:
        """Note a rank that is named at its end alone, if one communicator has its size."""
        of_size = [comm for key, comm in self._comms.items() if key[0] == ranks]
        if len(of_size) == 1 and rank not in of_size[0].places:
            of_size[0].places[rank] = record.host
            of_size[0].ended.add(rank)

    def _complete(self, record: Record, key: CommKey) -> None:
        ranks = self._of_process.get((record.host, record.pid), [])
        self._comm(key).complete.update(rank for item, rank in ranks if item == key)

    def _comm(self, key: CommKey) -> _Comm:
        if key not in self._comms and len(self._comms) >= _MAX_COMMS:
            return self._elsewhere
        return self._comms.setdefault(key, _Comm())

    def _speaks_of(self, record: Record, rank: int) -> _Comm:
        """Return the communicator that a record of this rank is about."""
        thread = (record.host, record.pid, record.tid)
        if thread in self._current:
            return self._comm(self._current[thread])
        mine = self._of_process.get((record.host, record.pid), [])
        # Connections that are made later (2.22) come from other threads of the process.
        fitting = [key for key, own in mine if own == rank and key[1]]
        if len(fitting) == 1:
            return self._comm(fitting[0])
        if len(fitting) > 1 or len(self._pending) >= _MAX_THREADS:
            return self._elsewhere
        return self._pending.setdefault(thread, _Comm())

    def _hop(self, record: Record, devices: dict[str, str]) -> None:
        found = _HOP.match(record.text)
        if found is None:
            self.torn += 1
            return
        a, b = int(found["a"]), int(found["b"])
        speaker = b if found["way"] == "receive" else a
        comm = self._speaks_of(record, speaker)
        if speaker not in comm.places:
            comm.put(speaker, record.host)
        if found["net"]:
            device = devices.get(found["device"], found["device"])
            hop = _Hop(a, b, found["net"], device, "GDRDMA" in found["rest"])
        else:  # 2.4: "via direct shared memory"
            hop = _Hop(a, b, "SHM" if found["local"] == "direct" else found["local"], "", False)
        if hop in comm.hops or len(comm.hops) < _MAX_HOPS:
            comm.hops[hop] += 1

    def _ring(self, record: Record) -> None:
        if found := _RING.match(record.text):
            channel, before, me, after = (int(item) for item in found.groups())
            ring = self._speaks_of(record, me).rings.setdefault(channel, {})
            ring[before] = me
            ring[me] = after
        elif not _ORDER.match(record.text):
            self.torn += 1

    def world(self) -> LoggedRanks:
        """Return the largest communicator; where there are several of its size, all of them."""
        comms = dict(self._comms)
        open_ones = _Comm()
        for comm in self._pending.values():
            open_ones.add(comm)
        open_ones.add(self._elsewhere)
        ranks = max((key[0] for key in comms), default=0)
        largest = _of_size(comms, ranks) or [open_ones]
        pairs = tuple(_pairs_of_all(largest))
        if not any(pair.crosses for pair in pairs):
            others = [comm for key, comm in comms.items() if key[0] != ranks]
            more = tuple(_pairs_of_all([*others, open_ones])) if comms else ()
            pairs += tuple(pair for pair in more if pair.crosses)
        first = largest[0]
        places = {rank: at for comm in reversed(largest) for rank, at in comm.places.items()}
        return LoggedRanks(
            ranks=ranks,
            nodes=max(comm.nodes for comm in largest),
            groups=len(largest) if comms else 0,
            places=places,
            pairs=pairs,
            complete=len(first.complete),
            started=len(first.places) - len(first.ended),
            rings_complete=_are_closed(first, ranks),
        )


def _of_size(comms: dict[CommKey, _Comm], ranks: int) -> list[_Comm]:
    """Return the communicators of that size; a torn line is no further one.

    From 2.17 on each whole line has the id, so that what lacks it beside others was torn.
    """
    named = [comm for key, comm in comms.items() if key[0] == ranks and key[1]]
    torn = comms.get((ranks, ""))
    if torn is None or len(named) > 1:
        return named
    if not named:
        return [torn]
    whole = _Comm(nodes=named[0].nodes, complete=named[0].complete, ended=named[0].ended)
    whole.add(torn)
    whole.add(named[0])
    return [whole]


def _pairs_of_all(comms: list[_Comm]) -> Iterator[Pair]:
    ways: defaultdict[tuple[int, int, str | None, str | None, str], Counter[_Hop]]
    ways = defaultdict(Counter)
    for comm in comms:
        hosts = {} if comm.is_mixed else {rank: host or None for rank, host in comm.places.items()}
        for hop, count in comm.hops.items():
            way = (hop.a, hop.b, hosts.get(hop.a), hosts.get(hop.b), hop.transport)
            ways[way][hop] += count
    for way in sorted(ways, key=lambda item: (item[0], item[1], item[4], str(item[2:4]))):
        a, b, host_a, host_b, transport = way
        yield Pair(
            a=a,
            b=b,
            host_a=host_a,
            host_b=host_b,
            transport=transport,
            devices=tuple(sorted({hop.device for hop in ways[way] if hop.device})),
            channels=ways[way].total(),
            gdr_channels=sum(count for hop, count in ways[way].items() if hop.is_gdr),
        )


def _are_closed(comm: _Comm, ranks: int) -> bool | None:
    """Return whether each ring visits every rank and comes back; None where a part is not told."""
    rings = comm.rings.values()
    if not ranks or not rings or comm.is_mixed or len(comm.places) < ranks:
        return None
    if any(len(ring) < ranks for ring in rings):
        return None
    return all(_length(ring) == ranks for ring in rings)


def _length(ring: dict[int, int]) -> int:
    start = at = next(iter(ring))
    for steps in range(1, len(ring) + 1):
        at = ring.get(at, -1)
        if at == start:
            return steps
    return -1
