"""torch's flight recorder: in which collective the ranks wait, and who never came to it.

Each rank leaves a pickle of plain containers in a file whose name ends with the rank. Sources:
torch's c10d/FlightRecorder.hpp (the keys) and FlightRecorderDetail.hpp (what is in the dump).
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from typing_extensions import override

from hpc_train.diagnose.rules import Evidence
from hpc_train.diagnose.stacks import is_installed
from hpc_train.diagnose.timeouts import rank_words

_MAX_BYTES = 32 << 20  # the 2,000 collectives that torch keeps take about 1 MB
_MAGIC = re.compile(rb"\x80[\x02-\x05]")  # PROTO 2 to 5, which no text begins with
_RANK = re.compile(r"(\d{1,6})\Z")
_BROKEN = (pickle.UnpicklingError, EOFError, AttributeError, LookupError, ValueError)
_OTHER_KIND = (TypeError, OverflowError, MemoryError)
# In these every rank brings as many elements; others may be uneven.
_EVEN = re.compile(r":(all_reduce|broadcast|reduce)\Z")

_Group = tuple[str, str, str]  # name, description, ranks; split groups share a name


class DumpError(Exception):
    """A file is no dump that can be read; says why."""


class _PlainUnpickler(pickle.Unpickler):
    """Containers, text and numbers: whatever names a class or a function is refused."""

    @override
    def find_class(self, module: str, name: str, /) -> Any:
        raise DumpError(f"it wants {module}.{name}, and a dump holds nothing but plain values")


@dataclass(frozen=True)
class _Call:
    """A collective, as one rank has begun it; `kind` has to be the same on all of them."""

    name: str
    kind: tuple[str, int]
    is_done: bool  # gloo never says so
    place: str
    time_ns: int


@dataclass(frozen=True)
class RankDump:
    """What one rank's file says: by group and number what is open, and the last one begun."""

    rank: int
    file: str
    calls: Mapping[_Group, Mapping[int, _Call]]


@dataclass(frozen=True)
class Stall:
    """A collective that does not end: the sentence, who has not begun it, and who has.

    `time_ns` is when the first rank began it, since the epoch.
    """

    cause: str
    late: set[int]
    waiting: set[int]
    time_ns: int
    evidence: tuple[Evidence, ...]


def is_dump(name: str) -> bool:
    """Whether a file is a pickle; raises OSError where it cannot be read."""
    if name == "-" or not Path(name).is_file():
        return False
    with Path(name).open("rb") as file:
        return bool(_MAGIC.match(file.read(2)))


def read_dump(name: str) -> RankDump:
    """Read one rank's dump; raises DumpError where it is none, and OSError."""
    rank = _RANK.search(name)
    if rank is None:
        raise DumpError("its name does not end with the number of the rank")
    if Path(name).stat().st_size > _MAX_BYTES:
        raise DumpError(f"it has more than {_MAX_BYTES >> 20} MiB")
    try:
        with Path(name).open("rb") as file:
            document = _PlainUnpickler(file).load()
        return RankDump(int(rank[1]), name, _calls(document["entries"], document["pg_config"]))
    except (*_BROKEN, *_OTHER_KIND) as error:
        raise DumpError(f"it is cut, or of another kind ({type(error).__name__})") from None


def _calls(entries: Sequence[Mapping[str, Any]], groups: Any) -> dict[_Group, dict[int, _Call]]:
    """The collectives that are open, and the last one; messages have numbers of their own."""
    firsts: dict[_Group, dict[int, Mapping[str, Any]]] = {}
    done: dict[_Group, set[int]] = {}
    for entry in (it for it in entries if not it["is_p2p"]):
        name, desc = (str(part)[:80] for part in entry["process_group"])
        group = (name, desc, str(groups.get(name, {}).get("ranks", ""))[:10_000])
        seq = int(entry["collective_seq_id"])
        firsts.setdefault(group, {}).setdefault(seq, entry)
        # Of the calls in one coalesced group only the last one is said to be completed.
        if entry["state"] == "completed":
            done.setdefault(group, set()).add(seq)
    found: dict[_Group, dict[int, _Call]] = {}
    for group, own in firsts.items():
        ended = done.get(group, set())
        kept = sorted({*(own.keys() - ended), max(own)})
        found[group] = {seq: _call(seq, own[seq], is_done=seq in ended) for seq in kept}
    return found


def _call(seq: int, entry: Mapping[str, Any], *, is_done: bool) -> _Call:
    op, sizes = str(entry["profiling_name"])[:80], entry["input_sizes"]
    elements = sum(prod(map(int, size)) for size in sizes)
    return _Call(
        name=f"{op} number {seq} ({elements} elements)",
        kind=(op, elements if _EVEN.search(op) else 0),
        is_done=is_done,
        place=_place(entry.get("frames", [])),
        time_ns=int(entry["time_created_ns"]),
    )


def _place(frames: Sequence[Mapping[str, Any]]) -> str:
    """Where the user's own code called it, the innermost frame."""
    own = [frame for frame in frames[:100] if not is_installed(str(frame["filename"]))]
    said = (f" in {it['name']} ({it['filename']}:{it['line']})"[:200] for it in own or frames)
    return next(said, "")


def find_stall(dumps: Sequence[RankDump]) -> Stall | None:
    """What the ranks wait in; None where no collective is open.

    Where several groups wait, it is the one whose late ranks do not wait in another.
    """
    groups = dict.fromkeys(group for dump in dumps for group in dump.calls)
    stalls = [stall for group in groups if (stall := _stall_of(group, dumps))]
    waiting = {rank for stall in stalls for rank in stall.waiting}
    stalls.sort(key=lambda it: (not it.late or it.late <= waiting, it.time_ns))
    return stalls[0] if stalls else None


def _stall_of(group: _Group, dumps: Sequence[RankDump]) -> Stall | None:
    """The first collective of a group that is open, and at which ranks differ or wait."""
    members = {int(rank) for rank in re.findall(r"\d+", group[2])}
    here = {it.rank: it for it in dumps if group in it.calls or it.rank in members}
    calls = {rank: dump.calls.get(group, {}) for rank, dump in here.items()}
    last = {rank: max(numbers, default=0) for rank, numbers in calls.items()}
    for seq in sorted({seq for numbers in calls.values() for seq in numbers}):
        begun = {rank: numbers[seq] for rank, numbers in calls.items() if seq in numbers}
        late = {rank for rank in here if last[rank] < seq}
        firsts = {call.kind: rank for rank, call in sorted(begun.items(), reverse=True)}
        is_gloo = any(op.startswith("gloo:") for op, _ in firsts)
        if all(it.is_done for it in begun.values()) or (is_gloo and not late and len(firsts) < 2):
            continue
        lasts = [(rank, "has begun as its last", calls[rank].get(last[rank])) for rank in late]
        waits = [(rank, "waits in", begun[rank]) for rank in firsts.values()]
        return Stall(
            cause=_cause(group, begun, late, members - set(here)),
            late=late,
            waiting=set(begun),
            time_ns=min(call.time_ns for call in begun.values()),
            evidence=tuple(_evidence(here[it[0]], *it[1:]) for it in (*lasts[:2], *waits[:2])),
        )
    return None


def _evidence(dump: RankDump, verb: str, call: _Call | None) -> Evidence:
    what = f"{verb} {call.name}{call.place}" if call else "has begun nothing in this group"
    return Evidence(file=dump.file, line=0, text=f"rank {dump.rank} {what}")


def _cause(group: _Group, begun: Mapping[int, _Call], late: set[int], silent: set[int]) -> str:
    by_name: dict[str, set[int]] = {}
    for rank, call in begun.items():
        by_name.setdefault(call.name, set()).add(rank)
    told = "; ".join(f"{name} on {rank_words(ranks)}" for name, ranks in by_name.items())
    of = f"of the process group {group[1] or group[0]}"
    tail = f"; {rank_words(silent)} left no dump" if silent else ""
    if len({call.kind for call in begun.values()}) > 1:
        return f"the ranks {of} left their common order: {told}{tail}"
    tail += f"; never joined it: {rank_words(late)}" if late else ""
    tail = tail or "; all ranks that left a dump have joined it"
    return f"a collective {of} did not end: {told}{tail}"
