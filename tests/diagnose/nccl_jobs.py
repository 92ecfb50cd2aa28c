"""Whole logs of jobs, as the versions of NCCL write them."""

from __future__ import annotations


def hop(version: str, channel: int, a: int, b: int, way: str, via: str) -> str:
    """One line of a hop, in the form of that NCCL version."""
    if version == "2.4":
        return f"Ring {channel:02d} : {a} -> {b} [{way}] via {via}"
    if version == "2.10":
        return f"Channel {channel:02d} : {a}[3b000] -> {b}[3b000] [{way}] via {via}"
    if version == "2.14":
        return f"Channel {channel:02d}/0 : {a}[3b000] -> {b}[3b000] [{way}] via {via}"
    return f"Channel {channel:02d}/0 : {a}[{a % 8}] -> {b}[{b % 8}] [{way}] via {via}"


USING = {
    "2.4": "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB ib0:10.1.0.1<0>",
    "2.10": "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB ib0:10.1.0.1<0>",
    "2.14": "NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/IB [RO]; OOB ib0:10.1.0.1<0>",
    "2.18": "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.1.0.1<0>",
    "2.23": "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.1.0.1<0>",
    "2.26": "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.1.0.1<0>",
    "2.28": "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.1.0.1<0>",
}

NETWORK = {
    "2.4": None,
    "2.10": "Using network IB",
    "2.14": "Using network IB",
    "2.18": "Using network IB",
    "2.23": "Using network IB",
    "2.26": "Using network IB",
    "2.28": "Assigned NET plugin IB to comm",
}

SUFFIX = {"2.14": "(0)/GDRDMA", "2.26": "/GDRDMA(PCI)", "2.28": "/GDRDMA(PCI)"}

VERSIONS = list(USING)


def log(version: str, *, nodes: int = 2, per_node: int = 2, net: str = "NET/IB") -> list[str]:
    """The lines all ranks of a job write, rank by rank."""
    ranks = nodes * per_node
    lines = [f"NCCL version {version}.5+cuda12.4"]
    for rank in range(ranks):
        node, device = divmod(rank, per_node)
        pre = f"node{node + 1}:{100 + rank}:{200 + rank} [{device}] NCCL INFO "
        colon = "Bootstrap:" if version >= "2.23" else "Bootstrap :"
        lines.append(f"{pre}{colon} Using ib0:10.1.0.{node + 1}<0>")
        lines.append(pre + USING[version])
        if NETWORK[version]:
            lines.append(pre + NETWORK[version])
        if version >= "2.18":
            lines.append(
                f"{pre}ncclCommInitRank comm 0x55 rank {rank} nranks {ranks} cudaDev {device}"
                f" nvmlDev {device} busId 3b000 commId 0xabc - Init START"
            )
        before, after = (rank - 1) % ranks, (rank + 1) % ranks
        for channel in range(2):
            lines.append(f"{pre}Ring {channel:02d} : {before} -> {rank} -> {after}")
            for a, b, way in ((before, rank, "receive"), (rank, after, "send")):
                if a // per_node == b // per_node:
                    if way == "send":
                        text = hop(version, channel, a, b, way, "P2P/IPC").replace(" [send]", "")
                        lines.append(pre + text)
                else:
                    suffix = SUFFIX.get(version, "/GDRDMA") if net == "NET/IB" else ""
                    via = f"{net}/{channel}{suffix}"
                    lines.append(pre + hop(version, channel, a, b, way, via))
        lines.append(f"{pre}Connected all rings")
        commid = " commId 0xabc" if version >= "2.18" else ""
        lines.append(
            f"{pre}comm 0x55 rank {rank} nranks {ranks} cudaDev {device} busId 3b000{commid}"
            " - Init COMPLETE"
        )
    return lines


def check(report, version):
    assert report.version == f"{version}.5"
    assert report.world.ranks == 4
    assert report.hosts == ("node1", "node2")
    assert {(p.a, p.b, p.transport) for p in report.crossing} == {
        (1, 2, "NET/IB"),
        (3, 0, "NET/IB"),
    }
    assert {(p.a, p.b) for p in report.pairs if not p.crosses} == {(0, 1), (2, 3)}
    assert report.all_over_ib is True
    assert report.gdr_share == "all"
    assert report.rings_complete is True
    assert report.world.complete == 4
    assert report.hcas["node1"] == ("mlx5_0:1/IB", "mlx5_1:1/IB")
    assert report.crossing[0].devices == ("mlx5_0:1/IB", "mlx5_1:1/IB")
    assert report.sockets["node2"] == "ib0"
