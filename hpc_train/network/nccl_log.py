"""Reads the log of NCCL_DEBUG=INFO: which way each pair of ranks really used.

One pass in bounded memory: what is kept grows with ranks and pairs, not with lines. Launcher
prefixes, interleaved ranks and torn lines are normal. Forms by version (2.4 to 2.30): see
docs/preflight.md; their source is NCCL's init.cc, net.cc, net_ib and net_socket.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from hpc_train.errors import CheckError
from hpc_train.network.nccl_report import NcclReport, Pair, RankPlace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import IO

__all__ = ["LogReader", "read_nccl_lines", "read_nccl_log"]

T = TypeVar("T")
# Number of ranks and commId (from NCCL 2.17 on, else "").
CommKey = tuple[int, str]
_UNKNOWN: CommKey = (0, "")

# A line longer than this is cut: NCCL's own longest (a merged list of HCAs) has a few thousand.
_MAX_LINE = 64 * 1024
_MAX_PAIRS = 500_000
_MAX_KEPT = 50

# host:pid:tid [cudaDev] NCCL INFO text; several may stand in one line when ranks write at once.
# From 2.26 a time stamp may stand before the host of a warning.
_RECORD = re.compile(
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]*):(?P<pid>\d+):(?P<tid>\d+)"
    r"(?: \[(?P<dev>-?\d+)\])?\s*(?P<where>[\w/.]+\.(?:cc|cu|h):\d+ )?NCCL (?P<level>INFO|WARN) "
)
_VERSION = re.compile(r"NCCL version (\d+\.\d+(?:\.\d+)?)")
_HOP = re.compile(
    r"(?:Ring|Channel) (?P<channel>\d+)(?:/\d+)? : (?P<a>\d+)(?:\[[^\]]*\])? -> "
    r"(?P<b>\d+)(?:\[[^\]]*\])?(?: \[(?P<way>send|receive)\])? via "
    r"(?P<via>[\w-]+(?:/[\w:.-]+)?)(?P<rest>\S*)"
)
_NEW_COMM = re.compile(r"comm 0x[0-9a-f]+ rank (\d+) n[rR]anks (\d+)(?:.*commId (0x[0-9a-f]+))?")
_RING = re.compile(r"Ring (\d+) : (\d+) -> (\d+) -> (\d+)")
_HCA = re.compile(r"\[(\d+)\]\s?([\w.-]+:\d+)/(IB|RoCE)")
_MERGED = re.compile(r"\[(\d+)\]=\{(.*?)\}")
_USING = re.compile(r"NET/(\w+) : Using (.*)")
_NETWORK = re.compile(r"(?:Using network|Assigned NET plugin|Initialized NET plugin) (\w+)")
_SOCKET = re.compile(r"\[\d+\]([\w.@-]+):[^\s<]*<\d+>")
_BOOTSTRAP = re.compile(r"Bootstrap ?: Using \[?\d*\]?([\w.@-]+):")
_COMPLETION = re.compile(
    r"Got completion (?:from peer (\S+) )?with (?:status=|error )(\d+).*?(?:hca (\S+))?\s*$"
)
_GDR_SUPPORT = re.compile(r"GPU Direct RDMA (Enabled|Disabled)")


def read_nccl_log(path: Path) -> NcclReport:
    """Return what the log says.

    Raises:
        CheckError: The file cannot be read, or holds no line of NCCL's.
    """
    try:
        with path.open("rb") as file:
            return _finish(_fed(_lines(file)), str(path))
    except OSError as error:
        raise CheckError(f"{path}: {error.strerror}", "name a log that you can read") from None


def read_nccl_lines(lines: Iterable[str], name: str = "the log") -> NcclReport:
    """Return what the lines say; raises CheckError where none of them is NCCL's."""
    return _finish(_fed(lines), name)


def _fed(lines: Iterable[str]) -> LogReader:
    reader = LogReader()
    for line in lines:
        reader.feed(line)
    return reader


def _finish(reader: LogReader, name: str) -> NcclReport:
    if reader.records == 0:
        raise CheckError(
            f"{name}: no line of NCCL's in it", "run with NCCL_DEBUG=INFO and give that log"
        )
    return reader.report()


def _lines(file: IO[bytes]) -> Iterator[str]:
    """Yield lines; an endless one comes in pieces instead of filling the memory."""
    while chunk := file.readline(_MAX_LINE):
        yield chunk.decode("utf-8", "replace")


@dataclass
class _Comm:
    """What is known of one size of communicator."""

    places: dict[int, RankPlace] = field(default_factory=dict)
    hops: Counter[tuple[int, int, str, str, bool]] = field(default_factory=Counter)
    complete: set[int] = field(default_factory=set)
    rings: dict[int, dict[int, int]] = field(default_factory=dict)


class LogReader:
    """Takes a log line by line; `report()` may be asked at any time."""

    def __init__(self) -> None:
        self.records = 0
        self.torn = 0
        self._version: str | None = None
        self._hosts: set[str] = set()
        self._comms: dict[CommKey, _Comm] = {}
        # The latest communicator of each thread: (host, pid, tid) -> communicator, rank.
        self._current: dict[tuple[str, str, str], tuple[CommKey, int]] = {}
        self._hcas: dict[str, dict[str, str]] = {}
        self._networks: Counter[str] = Counter()
        self._sockets: dict[str, str] = {}
        self._gdr: Counter[str] = Counter()
        self._warnings: Counter[str] = Counter()
        self._completions: Counter[tuple[str, str, str, str]] = Counter()

    def feed(self, line: str) -> None:
        """Take one line, with or without its newline, of any kind."""
        if "NCCL" not in line:
            return
        if self._version is None and (found := _VERSION.search(line)):
            self._version = found.group(1)
            self.records += 1
        end = len(line)
        for record in reversed(list(_RECORD.finditer(line))):
            host = self._host(record["host"], is_glued=line[: record.start()].find(" NCCL ") >= 0)
            self._record(record, host, line[record.end() : end].strip())
            end = record.end("host") - len(host)

    def _host(self, name: str, *, is_glued: bool) -> str:
        """Return the host; two records in one line glue the end of the first to the second's."""
        if not is_glued or name in self._hosts:
            self._hosts.add(name)
            return name
        return max((host for host in self._hosts if name.endswith(host)), key=len, default=name)

    def _record(self, record: re.Match[str], host: str, text: str) -> None:
        self.records += 1
        key = (host, record["pid"], record["tid"])
        if record["level"] == "WARN":
            self._warn(host, text)
        elif " via " in text:
            self._hop(key, text)
        elif text.startswith(("Channel", "Ring")):
            self._ring(key, text)
        else:
            self._setup(host, key, text)

    def _setup(self, host: str, key: tuple[str, str, str], text: str) -> None:
        if found := _NEW_COMM.search(text):
            self._joins(key, int(found.group(1)), (int(found.group(2)), found.group(3) or ""))
        if "Connected all rings" in text or "Init COMPLETE" in text:
            comm, rank = self._current.get(key, (_UNKNOWN, -1))
            if rank >= 0:
                self._comm(comm).complete.add(rank)
        if found := _USING.search(text):
            self._using(host, found.group(1), found.group(2))
        elif found := _NETWORK.search(text):
            self._networks[found.group(1)] += 1
        elif found := _BOOTSTRAP.search(text):
            self._sockets.setdefault(host, found.group(1))
        elif found := _GDR_SUPPORT.search(text):
            self._gdr[found.group(1)] += 1

    def _joins(self, key: tuple[str, str, str], rank: int, comm: CommKey) -> None:
        self._current[key] = (comm, rank)
        self._comm(comm).places[rank] = RankPlace(rank=rank, host=key[0], pid=int(key[1]))

    def _comm(self, key: CommKey) -> _Comm:
        return self._comms.setdefault(key, _Comm())

    def _using(self, host: str, network: str, rest: str) -> None:
        self._networks[network] += 1
        if network == "Socket":
            if found := _SOCKET.search(rest):
                self._sockets[host] = found.group(1)
            return
        names = self._hcas.setdefault(host, {})
        for index, merged in _MERGED.findall(rest):
            names[index] = "+".join(name for _, name, _ in _HCA.findall(merged))
        for index, name, layer in _HCA.findall(_MERGED.sub("", rest)):
            names[index] = f"{name}/{layer}"

    def _hop(self, key: tuple[str, str, str], text: str) -> None:
        found = _HOP.search(text)
        if found is None:
            self.torn += 1
            return
        a, b = int(found["a"]), int(found["b"])
        comm_key, rank = self._current.get(key, (_UNKNOWN, -1))
        comm = self._comm(comm_key)
        speaker = rank if rank >= 0 else (b if found["way"] == "receive" else a)
        comm.places.setdefault(speaker, RankPlace(rank=speaker, host=key[0], pid=int(key[1])))
        transport, device = _split(found["via"], found["rest"])
        is_gdr = "GDRDMA" in found["rest"] or "GDRDMA" in found["via"]
        hop = (a, b, transport, self._device(key[0], device), is_gdr)
        if hop in comm.hops or len(comm.hops) < _MAX_PAIRS:
            comm.hops[hop] += 1

    def _device(self, host: str, index: str) -> str:
        return self._hcas.get(host, {}).get(index, index)

    def _ring(self, key: tuple[str, str, str], text: str) -> None:
        if found := _RING.search(text):
            channel, before, me, after = (int(item) for item in found.groups())
            comm = self._comm(self._current.get(key, (_UNKNOWN, -1))[0])
            ring = comm.rings.setdefault(channel, {})
            ring[before] = me
            ring[me] = after
        elif not re.match(r"(Channel|Ring) \d+(/\d+)? ?:( +\d+)+$", text):
            self.torn += 1

    def _warn(self, host: str, text: str) -> None:
        if found := _COMPLETION.search(text):
            self._count(
                self._completions,
                (host, found.group(1) or "?", found.group(2), found.group(3) or ""),
            )
        self._count(self._warnings, f"{host}: {text}"[:300])

    @staticmethod
    def _count(counter: Counter[T], key: T) -> None:
        """Count with a bound: the kinds of warnings are few, a log full of noise has many."""
        if key in counter or len(counter) < _MAX_KEPT:
            counter[key] += 1

    def report(self) -> NcclReport:
        """Return what was read so far, of the largest communicator."""
        # max() takes the first of equals: the world comes before groups of its size.
        largest = max(self._comms, key=lambda key: key[0], default=_UNKNOWN)
        ranks = largest[0]
        comm = self._comms.get(largest, _Comm())
        # Lines before a rank said which communicator they belong to (before NCCL 2.16).
        early = self._comms.get(_UNKNOWN, _Comm()) if ranks else _Comm()
        hops = comm.hops + early.hops
        places = early.places | comm.places
        rings = {**early.rings, **comm.rings}
        return NcclReport(
            version=self._version,
            ranks=ranks or len(places),
            places=tuple(places[rank] for rank in sorted(places)),
            pairs=tuple(_pairs(hops, places)),
            networks=tuple(sorted(self._networks)),
            hcas={host: tuple(names.values()) for host, names in sorted(self._hcas.items())},
            sockets=dict(sorted(self._sockets.items())),
            ranks_complete=len(comm.complete | early.complete),
            rings_complete=_are_closed(rings, ranks or len(places)),
            gdr_supported=None if not self._gdr else "Enabled" in self._gdr,
            warnings=tuple(self._warnings.most_common()),
            completions=tuple((*key, count) for key, count in self._completions.most_common()),
            records=self.records,
            torn=self.torn,
        )


def _split(via: str, rest: str) -> tuple[str, str]:
    """Return (`NET/IB`, `0`) of `NET/IB/0`, (`P2P/CUMEM`, ``) of `P2P/CUMEM/read`."""
    if via == "direct":  # 2.4: "via direct shared memory"
        return "SHM", ""
    if not via.startswith("NET/"):
        return via, ""
    found = re.match(r"/(\d+)", rest)
    return via, found.group(1) if found else ""


def _pairs(
    hops: Counter[tuple[int, int, str, str, bool]], places: dict[int, RankPlace]
) -> Iterator[Pair]:
    grouped: dict[tuple[int, int, str], tuple[set[str], int, int]] = {}
    for (a, b, transport, device, is_gdr), count in hops.items():
        devices, total, gdr = grouped.get((a, b, transport), (set(), 0, 0))
        if device:
            devices.add(device)
        grouped[a, b, transport] = (devices, total + count, gdr + count * is_gdr)
    for (a, b, transport), (devices, total, gdr) in sorted(grouped.items()):
        yield Pair(
            a=a,
            b=b,
            host_a=places[a].host if a in places else None,
            host_b=places[b].host if b in places else None,
            transport=transport,
            devices=tuple(sorted(devices)),
            channels=total,
            gdr_channels=gdr,
        )


def _are_closed(rings: dict[int, dict[int, int]], ranks: int) -> bool | None:
    """Return whether each ring visits every rank and comes back; None without rings."""
    if not rings or ranks == 0:
        return None
    return all(_length(ring) == ranks for ring in rings.values())


def _length(ring: dict[int, int]) -> int:
    start = at = next(iter(ring))
    for steps in range(1, len(ring) + 1):
        at = ring.get(at, -1)
        if at == start:
            return steps
    return -1
