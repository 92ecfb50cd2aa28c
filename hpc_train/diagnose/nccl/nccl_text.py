"""A report on NCCL's logs, in lines for a reader and as JSON."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hpc_train.diagnose.rules import alike_line
from hpc_train.diagnose.shorten import fitting, shortened
from hpc_train.diagnose.who import is_part_of_address
from hpc_train.plan.hostlist import fold, fold_numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from hpc_train.diagnose.nccl.nccl_report import NcclReport, Pair
    from hpc_train.diagnose.rules import Evidence, Failure

_MAX_SHOWN = 5
_MAX_WIDTH = 200
_MAX_RANKS = 40
_GDR = {
    "all": ", with GPUDirect RDMA",
    "some": ", NOT all of it with GPUDirect RDMA",
    "none": ", none of it with GPUDirect RDMA",
    None: "",
}
# Interfaces that other nodes do not reach as a rule: bridges, containers, tunnels, loopback.
_LOCAL_NAMES = ("lo", "docker", "veth", "br-", "virbr", "cni", "cali", "flannel", "tun", "tap")
_LOOPBACK = "loopback, which is this host itself"
_LINK_LOCAL = "link-local, which other nodes reach only on the same link, if at all"
_LOCAL_ADDRESSES = {
    "127.": _LOOPBACK,
    "::1": _LOOPBACK,
    "[::1": _LOOPBACK,
    "169.254.": _LINK_LOCAL,
    "fe80:": _LINK_LOCAL,
    "[fe80": _LINK_LOCAL,
    "172.17.": "as a rule Docker's own bridge, which other nodes do not reach",
}


def explain(report: NcclReport) -> list[str]:
    """Return the report in lines: each failure with its evidence and fix first, then what is so."""
    lines = [line for failure in report.failures for line in _failure(failure, report.library)]
    return [*(lines or _headline(report)), *_facts(report), *_rest(report)]


def _failure(failure: Failure, library: str) -> Iterator[str]:
    where = f" (on {_folded(failure.hosts)})" if failure.hosts else ""
    cause = failure.cause or f"{library} warned of something that this reader does not know"
    yield f"failed: {cause}{where}"
    quotes = [_quoted("  ", item) for item in failure.evidence]
    yield from quotes
    if failure.times > len(failure.evidence):
        yield f"  {failure.times} lines say so"
    if more := alike_line(failure):
        yield shortened(f"  {more}", _MAX_WIDTH)
    if fix := fitting(failure.fix, quotes[0] if quotes else ""):
        yield f"  fix: {fix}"


def _place(item: Evidence) -> str:
    name = item.file or "line"
    return f"{name}:{item.line}: " if item.line else ""


def _quoted(before: str, item: Evidence) -> str:
    where = f"{before}{_place(item)}"
    return where + shortened(item.text, _MAX_WIDTH - len(where))


def _folded(hosts: Iterable[str]) -> str:
    names = list(hosts)
    try:
        return fold(names)
    except ValueError:  # a torn name
        return ", ".join(names)


def _headline(report: NcclReport) -> Iterator[str]:
    """Yield what is certain of the network, where nothing failed."""
    world, crossing = report.world, report.crossing
    slow = [pair for pair in crossing if pair.is_tcp]
    if slow:
        kinds = ", ".join(sorted({pair.transport for pair in slow}))
        which = "all" if len(slow) == len(crossing) else "not all, but some"
        yield f"{which} ways between nodes in this log use {kinds}"
        if any(report.hcas.values()):
            yield "although NCCL found InfiniBand or RoCE on a host"
    elif crossing:
        names = " and ".join(sorted({pair.transport for pair in crossing}))
        what = "InfiniBand (or RoCE)" if report.all_over_ib else names
        # Not every plugin marks its channels where it has GPUDirect.
        share = None if _is_unmarked(report) else report.gdr_share
        yield f"{what} between all nodes that talked in this log{_GDR[share]}"
    elif report.pairs and len(world.places) == (world.ranks or -1) and _is_one_node(report):
        yield "all ranks are on one node: the network"
        yield "between nodes was not used, so this log proves nothing about it"
    elif world.complete:
        yield "ranks in this log finished their initialisation"
    elif world.started and world.ranks:
        yield "no line of this log says that a rank finished its initialisation"
    else:
        yield "no failure is recognised in this log"


def _is_one_node(report: NcclReport) -> bool:
    """Whether one host has all that wrote: machines may have one name, and then use the network."""
    is_told = report.world.nodes <= 1 and len(report.hosts) == 1
    is_told = is_told and (report.world.nodes == 1 or not is_part_of_address(report.hosts[0]))
    return is_told and not any(pair.transport.startswith("NET/") for pair in report.pairs)


def _is_unmarked(report: NcclReport) -> bool:
    """Whether HCAs have GPUDirect RDMA and no channel says that it uses it."""
    return report.gdr_share == "none" and any(any(hcas.values()) for hcas in report.gdr.values())


def _facts(report: NcclReport) -> Iterator[str]:
    version = f"{report.library} {report.version}" if report.version else ""
    if told := ", ".join(part for part in (version, _size(report)) if part):
        yield told
    ways = {(_where(pair), pair.transport) for pair in report.pairs}
    for where in sorted({where for where, _ in ways}):
        yield f"{where}: {', '.join(sorted(name for at, name in ways if at == where))}"
    if report.networks:
        yield f"networks found: {', '.join(report.networks)}"
    if report.rings_complete is not None:
        yield f"rings: {'closed' if report.rings_complete else 'NOT closed'}"
    if report.settings:
        shown = [f"{name}={value}" for name, value in report.settings.items()]
        yield f"settings: {_list(shown, 8)}"
    yield from _devices(report)


def _where(pair: Pair) -> str:
    """Return what a way joins; two machines of one name look like one that uses the network."""
    if pair.crosses:
        return "between nodes"
    is_net = pair.transport.startswith("NET/")
    return "between ranks whose hosts have one name" if is_net else "inside a node"


def _size(report: NcclReport) -> str:
    world, hosts = report.world, report.hosts
    where = _hosts(hosts)
    if not world.ranks:
        return where
    is_whole = len(world.places) >= world.ranks
    are_hosts = (world.nodes or len(hosts)) == len(hosts) and (
        len(hosts) != 1 or _is_one_node(report)
    )
    are_hosts = are_hosts and (world.nodes > 0 or not any(map(is_part_of_address, hosts)))
    if is_whole and world.groups <= 1 and len(hosts) <= world.ranks and are_hosts:
        text = _ranks(world.ranks) + (f" on {where}" if where else "")
    else:
        nodes = f" on {world.nodes} node{'s'[: world.nodes > 1]}" if world.nodes else ""
        groups = f" ({world.groups} of that size)" if world.groups > 1 else ""
        text = f"a communicator of {_ranks(world.ranks)}{nodes}{groups}"
        text += "" if is_whole else f"; this log shows at least {_which(world.places)}"
        text += f"; {where} in this log" if where else ""
    return text


def _hosts(hosts: Sequence[str]) -> str:
    """Return `host node1` or `4 hosts`, and no number where a name may stand for several."""
    if any(map(is_part_of_address, hosts)):
        return f"hosts called {_list(hosts, _MAX_SHOWN)} (perhaps the first part of addresses)"
    return f"{len(hosts)} hosts" if len(hosts) > 1 else f"host {hosts[0]}" if hosts else ""


def _which(places: Collection[int]) -> str:
    """Return the ranks that wrote; others may be named by them, or wrote what is of no rank."""
    told = fold_numbers(places)
    who = f"rank{'s'[: len(places) != 1]} {told}"
    return who if 0 < len(told) <= _MAX_RANKS else f"{len(places)} of them"


def _ranks(count: int) -> str:
    return f"{count} rank{'s'[: count != 1]}"


def _devices(report: NcclReport) -> Iterator[str]:
    used: dict[str, set[str]] = defaultdict(set)
    # What a part of the ranks does not use the others may.
    is_whole = 0 < report.world.ranks <= min(len(report.world.places), report.world.complete)
    for pair in report.crossing if is_whole else ():
        for host in (pair.host_a, pair.host_b):
            used[host or ""].update(pair.devices)
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for host, names in report.hcas.items():
        mine = used.get(host, set())
        unused = tuple(name for name in names if name not in mine) if mine else ()
        alike[(", ".join(names), ", ".join(unused))].append(host)
    for (known, idle), hosts in alike.items():
        yield f"HCAs{_on(hosts)}: {known}" + (f"; not used: {idle}" if idle else "")
    for (said,), hosts in _alike({h: (_gdr(found),) for h, found in report.gdr.items()}).items():
        yield f"GPUDirect RDMA{_on(hosts)}: {said}"
    if _is_unmarked(report):
        yield "  no channel in this log is marked as using it (/GDRDMA)"
    if report.gdr_reasons:
        yield f"  off because: {_list(report.gdr_reasons, _MAX_SHOWN)}"
    plain = {h: tuple(i.partition(":")[0] for i in names) for h, names in report.interfaces.items()}
    for names, hosts in _alike(plain).items():
        yield f"interfaces{_on(hosts)}: {_list(names, 8)}"
    yield from _unreachable(report)


def _gdr(found: Mapping[str, bool]) -> str:
    on = [name for name, is_on in found.items() if is_on]
    off = [name for name, is_on in found.items() if not is_on]
    parts = [f"on for {_list(on, 8)}"] * bool(on) + [f"OFF for {_list(off, 8)}"] * bool(off)
    return ", ".join(parts)


def _unreachable(report: NcclReport) -> Iterator[str]:
    """Yield interfaces that other nodes do not reach as a rule, where there are other nodes."""
    is_alone = report.world.nodes <= 1 and len(report.hosts) <= 1 and not report.crossing
    if is_alone and not any(item.name.startswith("connect") for item in report.failures):
        return
    doubtful = {
        host: tuple(dict.fromkeys(said for name in names if (said := _doubt(name))))
        for host, names in report.interfaces.items()
    }
    for doubts, hosts in _alike(doubtful).items():
        if doubts:
            yield f"{_list(doubts, 4)}{_on(hosts)}; NCCL_SOCKET_IFNAME chooses"
    firsts = {host: (names[0].partition(":")[0],) for host, names in report.interfaces.items()}
    if len(by_name := _alike(firsts)) > 1:
        told = [f"{name}{_on(hosts)}" for (name,), hosts in by_name.items()]
        yield (
            f"the first interface is not the same on all hosts ({_list(told, 4)}): no fault where"
            " these networks reach each other, else NCCL_SOCKET_IFNAME chooses one that all share"
        )


def _doubt(interface: str) -> str:
    """Why other nodes may not reach an interface: by its address, or else by its name."""
    name, _, address = interface.partition(":")
    why = next((why for begin, why in _LOCAL_ADDRESSES.items() if address.startswith(begin)), "")
    if why:
        return f"{name} is used with {address}: {why}"
    is_named = name == "lo" or name.startswith(_LOCAL_NAMES[1:])
    return f"{name} by its name is of this host alone as a rule" if is_named else ""


def _rest(report: NcclReport) -> Iterator[str]:
    for note in report.notes:
        yield f"note: {note.cause}{_on(note.hosts)}; {note.fix}"
    shown = {item for failure in report.failures for item in failure.evidence}
    others = [warned for warned in report.warnings if warned.evidence[0] not in shown]
    for warned in others[:_MAX_SHOWN]:
        times = f" ({warned.times} times)" if warned.times > 1 else ""
        first = warned.evidence[0]
        yield _quoted(f"warning{times}: ", first)
    if len(others) > _MAX_SHOWN or report.dropped:
        more = max(len(others) - _MAX_SHOWN, 0)
        yield f"{more} further kinds of warnings, {report.dropped} lines not kept"
    if report.torn:
        yield f"{report.torn} of {report.records} records are torn or mixed and were passed over"


def _alike(found: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, ...], list[str]]:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for host, said in found.items():
        groups[said].append(host)
    return groups


def _on(hosts: Iterable[str]) -> str:
    names = [host for host in hosts if host]
    return f" on {_folded(names)}" if names else ""


def _list(items: Iterable[str], most: int) -> str:
    names = list(items)
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join(names[:most] + more)


def report_json(report: NcclReport) -> dict[str, Any]:
    """Return the report for JSON; a transport a pair of hosts, None where unknown."""
    first = report.failures[0] if report.failures else None
    as_they_are = (
        "version library hosts networks hcas gdr gdr_reasons interfaces settings records torn"
    )
    return {
        "schema_version": 1,
        **{name: getattr(report, name) for name in as_they_are.split()},
        "ranks": {
            "total": report.world.ranks or None,
            "nodes": report.world.nodes or None,
            "here": len(report.world.places),
            "finished": report.world.complete,
        },
        "transports": _transports(report),
        "cause": (first.cause or None) if first else None,
        "evidence": [asdict(item) for item in first.evidence] if first else [],
        "fix": (first.fix or None) if first else None,
        "failures": [_failure_json(item) for item in report.failures],
        "notes": [_failure_json(item) for item in report.notes],
        "warnings": [
            {**asdict(item.evidence[0]), "times": item.times, "hosts": item.hosts}
            for item in report.warnings
        ],
        "warnings_dropped": report.dropped,
    }


def _transports(report: NcclReport) -> list[dict[str, Any]]:
    ways: dict[tuple[str | None, str | None, str], list[Pair]] = defaultdict(list)
    for pair in report.pairs:
        ways[pair.host_a, pair.host_b, pair.transport].append(pair)
    return [
        {
            "a": a,
            "b": b,
            "transport": transport,
            "gdr": all(pair.gdr_channels == pair.channels for pair in pairs),
            "devices": sorted({name for pair in pairs for name in pair.devices}),
            "ranks": len(pairs),
        }
        for (a, b, transport), pairs in ways.items()
    ]


def _failure_json(failure: Failure) -> dict[str, Any]:
    told = ("name", "fix", "times", "hosts")
    document = {name: getattr(failure, name) for name in told}
    evidence = [asdict(item) for item in failure.evidence]
    return {**document, "cause": failure.cause or None, "evidence": evidence}
