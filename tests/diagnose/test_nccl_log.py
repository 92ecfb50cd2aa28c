from __future__ import annotations

import gzip
import io
import json
import random
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.diagnose import log_files
from hpc_train.diagnose.nccl.nccl_log import LogReader, read_nccl_lines, read_nccl_logs
from hpc_train.diagnose.nccl.nccl_text import explain, report_json
from hpc_train.errors import HpcTrainError


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


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_that_infiniband_was_really_used(version):
    check(read_nccl_lines(log(version)), version)


PREFIXES = {
    "srun --label": lambda i: f"{i % 4}: ",
    "torchrun": lambda i: f"[rank{i % 4}]:",
    "torchrun local": lambda i: f"[default{i % 4}]:",
    "mpirun": lambda i: f"[1,{i % 4}]<stdout>:",
    "ray": lambda i: f"(RayTrainWorker pid={i}, ip=10.0.0.{i % 4}) ",
    "pdsh": lambda i: f"node{i % 2 + 1}: ",
    "time": lambda i: f"2025-11-03T12:34:{i % 60:02d}.123Z ",
    "clock": lambda i: f"12:34:{i % 60:02d} ",
    "kubectl": lambda i: f"[pod/train-worker-{i % 4}/pytorch] ",
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("version", ["2.4", "2.18", "2.28"])
def test_launcher_prefixes_do_not_matter(prefix, version):
    lines = [PREFIXES[prefix](i) + line for i, line in enumerate(log(version))]
    check(read_nccl_lines(lines), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_interleaved_ranks_do_not_matter(version):
    lines = log(version)
    per_rank: dict[str, list[str]] = {}
    for line in lines[1:]:
        per_rank.setdefault(line.partition(" ")[0], []).append(line)
    rng = random.Random(version)
    mixed = [lines[0]]
    while per_rank:
        key = rng.choice(sorted(per_rank))
        mixed.append(per_rank[key].pop(0))
        if not per_rank[key]:
            del per_rank[key]
    mixed += ["epoch 3 loss 0.2", "", "NCCL is great"]
    check(read_nccl_lines(mixed), version)


def test_two_records_in_one_line_are_both_read():
    lines = log("2.18")
    glued = [lines[0]] + ["".join(lines[i : i + 2]) for i in range(1, len(lines), 2)]
    check(read_nccl_lines(glued), "2.18")


def test_torn_lines_are_counted_and_passed_over():
    lines = log("2.18")
    torn = [line[: len(line) // 2 + 20] if i % 7 == 3 else line for i, line in enumerate(lines)]
    report = read_nccl_lines(torn)
    assert report.torn > 0
    assert report.all_over_ib is True


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_way_of_tearing_breaks_the_reader(data):
    lines = log(data.draw(st.sampled_from(VERSIONS)))
    reader = LogReader()
    for line in lines:
        cut = data.draw(st.integers(0, len(line)))
        reader.feed(line[:cut] + data.draw(st.sampled_from(["", "\x00", "é", "NCCL INFO "])))
        reader.feed(line[cut:])
    explain(reader.report())


def test_tcp_between_nodes_is_told_although_infiniband_was_found():
    report = read_nccl_lines(log("2.18", net="NET/Socket"))
    assert report.all_over_ib is False
    lines = explain(report)
    assert lines[0] == "all ways between nodes in this log use NET/Socket"
    assert lines[1] == "although NCCL found InfiniBand or RoCE on a host"


def test_one_node_proves_nothing_about_the_network():
    report = read_nccl_lines(log("2.18", nodes=1, per_node=4))
    assert report.all_over_ib is None
    assert "proves nothing" in " ".join(explain(report))


FIELD = """
node1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_bond_0:1/RoCE [RO]; OOB ib0:10.0.0.1<0>
node2:1:2 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_2:1/RoCE, [1] mlx5_3:1/RoCE} [RO]; OOB e:10.0.0.2<0>
node3:1:2 [0] NCCL INFO NET/Socket : Using [0]bond0:10.0.0.3<0>
node4:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB/SHARP
node1:1:2 [0] NCCL INFO Using network IBext
node1:9:9 [7] NCCL INFO Channel 03/0 : 47[7] -> 39[7] [receive] via NET/IBext_v8/2
node1:9:9 [7] NCCL INFO Channel 04/0 : 47[7] -> 39[7] [receive] via NET/IBext_v8/0(46)/GDRDMA
node1:1:2 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]
[2025-06-01 10:00:00] node1:1:2 [0] transport/net_ib.cc:123 NCCL WARN NET/IB : Got completion from peer 10.0.0.7<4711> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid fe80::1 remoteGids fe80::2 hca mlx5_0
node5:1:2 [0] NCCL INFO Failed to initialize NET plugin IB
node6:1:2 [0] transport/net_ib.cc:784 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129
"""  # noqa: E501


def test_forms_seen_in_the_field_are_read():
    report = read_nccl_lines(FIELD.splitlines())
    assert report.hcas["node1"] == ("mlx5_0:1/IB", "mlx5_bond_0:1/RoCE")
    assert report.hcas["node2"] == ("mlx5_2:1+mlx5_3:1",)
    assert report.hcas["node4"] == ("mlx5_0:1/IB",)
    assert report.sockets == {"node1": "ib0", "node2": "e", "node3": "bond0"}
    assert set(report.networks) == {"IB", "IBext", "Socket"}
    (pair,) = report.pairs
    assert (pair.transport, pair.channels, pair.gdr_channels) == ("NET/IBext_v8", 2, 1)
    assert pair.devices == ("2", "mlx5_0:1/IB")
    assert pair.is_ib
    (failure,) = report.failures
    assert failure.name == "retry_exceeded"
    assert "10.0.0.7<4711>" in failure.cause
    assert (failure.times, failure.hosts, failure.alike) == (1, ("node1",), 1)
    assert failure.others[0].hosts == ("node6",)
    assert any("libibverbs" in note.cause for note in report.notes)
    assert any("not the culprit" in line for line in explain(report))


def test_an_open_ring_is_told():
    lines = [line.replace("Ring 01 : 2 -> 3 -> 0", "Ring 01 : 2 -> 3 -> 2") for line in log("2.18")]
    report = read_nccl_lines(lines)
    assert report.rings_complete is False
    assert "rings: NOT closed" in explain(report)


def test_a_ring_of_which_a_part_is_missing_is_not_called_open():
    lines = log("2.18")
    cut = [line for line in lines if "Ring 01" not in line or "node2" not in line]
    alone = [line for line in lines if "Ring 0" in line and "node1" in line]
    for part in (cut, alone):
        report = read_nccl_lines(part)
        assert report.rings_complete is None
        assert "rings" not in "\n".join(explain(report))


def test_what_is_glued_to_a_host_is_no_part_of_it():
    text = "NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>"
    report = read_nccl_lines(
        [
            f"2026-05-16T16:39:51.208-07:00node1:1:1 [0] {text}",
            f"node1:412:413node1:415:416 [0] {text}",
            f"[1,0]<stdout>:node1:1:1 [0] {text}",
        ]
    )
    assert report.hosts == ("node1",)


def test_what_ray_writes_behind_a_setting_is_no_part_of_it():
    text = "NCCL INFO NCCL_P2P_LEVEL set by environment to NVL"
    ray = "[repeated 15x across cluster]"
    lines = [f"n:1:1 [0] {text} {ray}", f"n:1:1 [0] NCCL INFO NCCL_X set to 1. {ray}", "end"]
    report = read_nccl_lines(lines)
    assert report.settings == {"NCCL_P2P_LEVEL": "NVL", "NCCL_X": "1"}


def test_a_bootstrap_without_an_interface_is_none():
    text = "NCCL INFO Bootstrap timings total 0.03 (create 0.00, send 0.00, recv 0.03, ring 0.00)"
    report = read_nccl_lines([f"node1:1:1 [0] {text}"])
    assert report.interfaces == {}
    assert "interfaces" not in "\n".join(explain(report))


def test_groups_beside_the_world_do_not_disturb_it():
    lines = log("2.18")
    for rank, (host, pid) in enumerate((("node1", 100), ("node2", 102))):
        pre = f"{host}:{pid}:{pid + 100} [0] NCCL INFO "
        lines += [
            f"{pre}ncclCommInitRank comm 0x77 rank {rank} nranks 2 cudaDev 0 commId 0xdef - START",
            f"{pre}Channel 00/0 : {rank}[0] -> {1 - rank}[0] [send] via NET/Socket/0",
            f"{pre}Ring 00 : {1 - rank} -> {rank} -> {1 - rank}",
        ]
    check(read_nccl_lines(lines), "2.18")


@pytest.mark.parametrize("text", ["", "hello\nworld\n", "NCCL\n", "\x00\xff" * 100])
def test_a_log_that_is_none_of_nccls_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "some.log"
    path.write_text(text)
    with pytest.raises(HpcTrainError, match="no line of NCCL's") as error:
        read_nccl_logs([str(path)])
    assert "hpc-train diagnose" in error.value.hint


def test_a_log_that_is_not_there_is_refused_in_one_line(tmp_path):
    with pytest.raises(HpcTrainError, match="No such file"):
        read_nccl_logs([str(tmp_path / "absent.log")])


@pytest.mark.slow
def test_a_hundred_megabytes_are_read_in_bounded_memory(tmp_path):
    path = tmp_path / "big.log"
    lines = "\n".join(log("2.18", nodes=8, per_node=8)) + "\n"
    noise = "step 1 loss 0.1 " * 40 + "\n"
    warning = "node1:1:2 [0] misc/x.cc:1 NCCL WARN number {} is off\n"
    with path.open("w") as file:
        file.write(lines)
        file.write("x" * 5_000_000 + "\n")  # one endless line
        size = 0
        i = 0
        while size < 95_000_000:
            i += 1
            block = noise * 100 + warning.format(i) + (lines if i % 100 == 0 else "")
            size += len(block)
            file.write(block)
    assert path.stat().st_size > 99_000_000
    tracemalloc.start()
    try:
        report = read_nccl_logs([str(path)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        path.unlink()
    assert report.world.ranks == 64
    assert report.all_over_ib is True
    assert peak < 4_000_000


def test_a_healthy_efa_is_none_of_a_fault():
    lines = [line.replace("NET/IB/", "NET/AWS Libfabric/") for line in log("2.18")]
    lines = [line.replace("Using network IB", "Using network AWS Libfabric") for line in lines]
    lines.insert(1, "node1:1:2 [0] NCCL INFO NET/OFI Selected Provider is efa (found 16 nics)")
    report = read_nccl_lines(lines)
    assert {pair.transport for pair in report.crossing} == {"NET/AWS Libfabric"}
    assert report.gdr_share == "all"
    assert report.torn == 0
    told = explain(report)
    assert told[0].startswith("NET/AWS Libfabric between all nodes that talked in this log, with")
    assert any("libfabric efa, 16 NICs" in line for line in told)


@pytest.mark.parametrize("name", ["FastSocket", "Libfabric", "NCCL RDMA Plugin v8", "gIB", "UCX"])
def test_a_plugin_keeps_its_name(name):
    report = read_nccl_lines(log("2.26", net=f"NET/{name}"))
    assert {pair.transport for pair in report.crossing} == {f"NET/{name}"}


GDR = {
    "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'": "OFF for mlx5_0",
    "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'": "on for mlx5_0",
    "GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 4 > 3)": "distance 4 > 3",
    "NET/IB : GPU Direct RDMA (DMABUF) enabled for HCA 0 'mlx5_0": "on for mlx5_0",
}


@pytest.mark.parametrize("text", GDR)
def test_gpudirect_is_told(text):
    lines = [f"node{i}:1:2 [0] NCCL INFO {text}" for i in (1, 2)]
    told = "\n".join(explain(read_nccl_lines(lines)))
    assert GDR[text] in told
    assert "node[1-2]" in told


def test_what_is_known_at_the_start_is_told():
    lines = [
        "node1:1:2 [0] NCCL INFO Bootstrap : Using [0]eth0:10.0.0.1<0> [1]veth12ab:fe80::1%veth<0>",
        "node2:1:2 [0] NCCL INFO Bootstrap : Using [0]eth0:10.0.0.2<0>",
        "node2:1:2 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ^lo,docker",
        "node1:1:2 [0] NCCL INFO NET/IB : No device found.",
        "node1:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0> [1]tun0:10.9.0.1<0>",
        "node1:1:2 [0] NCCL INFO Using network Socket",
    ]
    told = "\n".join(explain(read_nccl_lines(lines)))
    assert "networks found: Socket" in told
    assert "NCCL_SOCKET_IFNAME=^lo,docker" in told
    assert "interfaces on node1: eth0, veth12ab, tun0" in told
    assert "veth12ab is used with fe80::1%veth: link-local" in told
    assert "tun0 by its name is of this host alone as a rule on node1; NCCL_SOCKET" in told
    assert "first interface" not in told
    assert "no InfiniBand or RoCE device on node1" in told


LOCAL = {
    "lo:127.0.0.1": "this host itself",
    "eth0:169.254.3.4": "link-local",
    "ib0:fe80::1%ib0": "ib0 is used with fe80::1%ib0: link-local",
    "docker0:172.17.0.1": "Docker's own bridge",
    "virbr0:192.168.122.1": "virbr0 by its name",
}


@pytest.mark.parametrize("interface", LOCAL)
def test_an_interface_of_one_host_alone_is_told_with_why_where_there_are_others(interface):
    lines = [f"node{i}:1:2 [0] NCCL INFO Bootstrap : Using {interface}<0>" for i in (1, 2)]
    assert any(LOCAL[interface] in line for line in explain(read_nccl_lines(lines)))
    assert not any(LOCAL[interface] in line for line in explain(read_nccl_lines(lines[:1])))


def test_hosts_whose_first_interfaces_have_different_names_are_told_as_perhaps_fine():
    line = "node{0}:1:2 [0] NCCL INFO Bootstrap : Using {1}:10.0.0.{0}<0>"
    (told,) = [
        said
        for said in explain(read_nccl_lines([line.format(1, "ib0"), line.format(2, "bond0")]))
        if "first interface" in said
    ]
    assert "ib0 on node1" in told
    assert "bond0 on node2" in told
    assert "no fault where" in told


def test_one_hosts_share_of_a_job_is_not_the_whole_job():
    lines = [line for line in log("2.18", nodes=4) if line.startswith(("NCCL", "node2:"))]
    start = next(number for number, line in enumerate(lines) if "START" in line)
    lines.insert(
        start + 1, "node2:102:202 [0] NCCL INFO comm 0x55 rank 2 nRanks 8 nNodes 4 localRanks 2"
    )
    report = read_nccl_lines(lines)
    assert (report.world.ranks, report.world.nodes, len(report.world.places)) == (8, 4, 2)
    assert report.rings_complete is None
    told = explain(report)
    assert told[0].startswith("InfiniBand (or RoCE) between all nodes that talked in this log")
    assert "8 ranks on 4 nodes; this log shows at least ranks 2-3; host node2 in" in told[1]


def test_a_log_of_finished_ranks_is_not_told_to_lack_a_connection():
    lines = [line for line in log("2.18") if " via " not in line and "Ring" not in line]
    told = explain(read_nccl_lines(lines))
    assert told[0] == "ranks in this log finished their initialisation"
    assert "4 ranks on 2 hosts" in told[1]


def test_machines_of_one_name_are_not_told_as_one_node():
    told = explain(read_nccl_lines([line.replace("node2", "node1") for line in log("2.18")]))
    assert "one node" not in told[0]
    assert "on host" not in told[1]
    assert "between ranks whose hosts have one name: NET/IB" in told


def test_a_part_of_the_ways_is_not_counted():
    lines = log("2.4", per_node=3)
    told = explain(read_nccl_lines([line for line in lines if "COMPLETE" not in line][:-4]))
    assert "between nodes: NET/IB" in told
    assert not [line for line in told if "via" in line]


def test_what_the_lines_do_not_agree_on_is_not_told():
    at = "n1:1:2 [0] NCCL INFO "
    told = explain(
        read_nccl_lines(
            [
                "NCCL version 2.18.3+cuda12.2",
                f"{at}NCCL_SOCKET_IFNAME set by environment to eth0",
                "NCCL version 2.21.5+cuda12.4",
                f"{at}NCCL_SOCKET_IFNAME set by environment to eth1",
            ]
        )
    )
    assert told[1:] == ["host n1", "settings: NCCL_SOCKET_IFNAME=(not the same in all lines)"]


def test_how_many_finished_is_not_told_of_lines_that_may_be_cut():
    lines = log("2.18", per_node=4)
    ends = (
        "Connected all rings",
        "rank 1 nranks 8 cudaDev 1 busId 3b000 commId 0xabc - Init COMPLETE",
    )
    cut = [line for line in lines if not line.endswith(ends)]
    assert "finished" not in explain(read_nccl_lines(cut))[1]
    begun = [line for line in lines if "START" in line]
    assert explain(read_nccl_lines(begun))[0].startswith("no line of this log says")


def test_a_merged_device_keeps_its_whole_name():
    lines = ["n1:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 2 'mlx5_0+mlx5_1'"]
    assert "GPUDirect RDMA on n1: OFF for mlx5_0+mlx5_1" in explain(read_nccl_lines(lines))


def test_hosts_that_speak_are_never_none():
    told = explain(read_nccl_lines(["n1:1:2 [0] NCCL INFO hello", "n2:1:2 [0] NCCL INFO hello"]))
    assert told[1] == "2 hosts"


def test_groups_before_commid_are_not_ranks_of_the_world():
    lines = log("2.10", nodes=2, per_node=2)
    for node in (1, 2):
        for rank in (0, 1):
            pre = f"node{node}:{98 + 2 * node + rank}:{900 + rank} [0] NCCL INFO "
            lines += [
                f"{pre}Channel 00 : {rank}[3b000] -> {1 - rank}[3b000] via P2P/IPC",
                f"{pre}comm 0x77 rank {rank} nranks 2 cudaDev 0 busId 3b000 - Init COMPLETE",
            ]
    check(read_nccl_lines(lines), "2.10")


def test_groups_alone_are_told_as_groups():
    lines = []
    for node in range(3):
        for rank in range(2):
            pre = f"node{node}:{rank + 1}:{rank + 1} [0] NCCL INFO "
            comm = f"{pre}ncclCommInitRank comm 0x5 rank {rank} nranks 2 commId 0x{node} - Init "
            hop = f"{pre}Channel 00/0 : {rank}[0] -> {1 - rank}[0] via P2P/IPC"
            lines += [f"{comm}START", hop, f"{comm}COMPLETE"]
    told = explain(read_nccl_lines(lines))
    assert "a communicator of 2 ranks (3 of that size)" in told[1]
    assert not any("all ranks are on one node" in line for line in told)


def test_a_cut_line_begins_no_communicator_of_its_own():
    line = "node1:{0}:{0} [{0}] NCCL INFO ncclCommInitRank comm 0x5 rank {0} nranks 2 "
    whole = line.format(0) + "cudaDev 0 busId 60000 commId 0x1234 - Init START"
    told = explain(read_nccl_lines([whole, f"{line.format(1)}busId 61000 commId 0x12"]))
    assert not any("of that size" in text for text in told)


def test_connections_made_later_by_another_thread_belong_to_their_communicator():
    lines = [line for line in log("2.28") if " via " not in line]
    hops = [line for line in log("2.28") if " via " in line]
    lines += [re.sub(r"^(node\d:\d+:)\d+", r"\g<1>9999", line) for line in hops]
    assert read_nccl_lines(lines).all_over_ib is True


@pytest.mark.parametrize("nodes", [1, 2, 512])
def test_hosts_that_are_alike_are_one_line(nodes):
    lines = [
        f"node{node:03d}:1:2 [0] NCCL INFO {text}"
        for node in range(nodes)
        for text in (
            "Bootstrap : Using ib0:10.1.0.1<0>",
            USING["2.18"],
            "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
        )
    ]
    told = explain(read_nccl_lines(lines))
    assert len(told) < 10
    if nodes > 1:
        assert f"HCAs on node[000-{nodes - 1:03d}]: mlx5_0:1/IB, mlx5_1:1/IB" in told


def test_torch_one_took_the_number_of_nccl_apart_wrongly():
    assert read_nccl_lines(["NCCL error in: x.cpp:1, NCCL version 21.0.3"]).version == "2.10.3"


def test_json_holds_what_the_lines_hold():
    document = json.loads(json.dumps(report_json(read_nccl_lines(log("2.18")))))
    assert document["schema_version"] == 1
    assert document["version"] == "2.18.5"
    assert document["ranks"] == {"total": 4, "nodes": None, "here": 4, "finished": 4}
    ways = {(way["a"], way["b"]): way for way in document["transports"]}
    assert ways["node1", "node2"]["transport"] == "NET/IB"
    assert ways["node1", "node2"]["gdr"] is True
    assert ways["node1", "node2"]["devices"] == ["mlx5_0:1/IB", "mlx5_1:1/IB"]
    assert document["hcas"]["node1"] == ["mlx5_0:1/IB", "mlx5_1:1/IB"]
    assert document["interfaces"]["node2"] == ["ib0:10.1.0.2"]
    assert document["cause"] is None
    assert document["failures"] == []


# From files: packed, encoded, several, and with what a training writes between.


def write(path: Path, lines: list[str], encoding: str = "utf-8") -> str:
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))
    return str(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_of_any_encoding_is_read(tmp_path, encoding):
    lines = log("2.18")
    if encoding == "utf-16-be":
        lines[0] = "\ufeff" + lines[0]
    check(read_nccl_logs([write(tmp_path / "a.log", lines, encoding)]), "2.18")


def test_a_gzip_is_read_and_a_cut_one_as_far_as_it_goes(tmp_path):
    packed = gzip.compress("\n".join([*log("2.18"), *(f"{i * i}" for i in range(99_999))]).encode())
    (tmp_path / "a.log.gz").write_bytes(packed)
    check(read_nccl_logs([str(tmp_path / "a.log.gz")]), "2.18")
    (tmp_path / "b.log.gz").write_bytes(packed[: len(packed) - 1000])
    check(read_nccl_logs([str(tmp_path / "b.log.gz")]), "2.18")
    small = gzip.compress("\n".join(log("2.18")).encode())
    (tmp_path / "d.log.gz").write_bytes(small[:-9])
    check(read_nccl_logs([str(tmp_path / "d.log.gz")]), "2.18")
    (tmp_path / "c.gz").write_bytes(packed[:5])
    with pytest.raises(HpcTrainError, match="no line of NCCL's"):
        read_nccl_logs([str(tmp_path / "c.gz")])


def test_one_log_a_host_is_one_job(tmp_path):
    for node in ("node1", "node2"):
        write(
            tmp_path / f"nccl-{node}.log",
            [line for line in log("2.18") if line.startswith(("NCCL", node))],
        )
    (tmp_path / "model.bin").write_bytes(b"NCCL WARN Invalid rank requested : 1/1\n")
    check(read_nccl_logs([str(tmp_path)]), "2.18")
    check(read_nccl_logs([str(tmp_path / "*.log")]), "2.18")
    both = [str(tmp_path / f"nccl-node{i}.log") for i in (1, 2)]
    check(read_nccl_logs(both + both), "2.18")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_between_the_trainings_own_lines_tells_the_same(tmp_path, version, newline):
    noisy = []
    for number, line in enumerate(log(version)):
        noisy += [f"step {number} loss 0.1", f"\r 10%|#  |\r 20%|## |{line}", ""]
    path = tmp_path / "a.log"
    path.write_bytes(newline.join(noisy).encode())
    check(read_nccl_logs([str(path)]), version)


def test_a_file_tells_what_its_lines_tell(tmp_path):
    glued = log("2.18", nodes=4, per_node=4)
    glued = [glued[0]] + ["".join(glued[i : i + 3]) for i in range(1, len(glued), 3)]
    from_file = read_nccl_logs([write(tmp_path / "a.log", glued)])
    from_lines = read_nccl_lines(glued)
    assert {(p.a, p.b, p.host_a, p.host_b, p.transport) for p in from_file.pairs} == {
        (p.a, p.b, p.host_a, p.host_b, p.transport) for p in from_lines.pairs
    }
    assert from_file.world.places == from_lines.world.places
    assert from_file.rings_complete is True


def test_a_log_of_collectives_alone_is_nccls(tmp_path):
    lines = [
        f"n1:1:1 [0] NCCL INFO AllReduce: opCount {i:x} sendbuff 0x7f{i:x} count 1 comm 0x5"
        for i in range(3)
    ]
    report = read_nccl_logs([write(tmp_path / "a.log", lines)])
    assert report.speakers == ("n1",)
    assert report.failures == ()


def test_the_words_of_torch_are_found_between_any_lines(tmp_path):
    lines = ["step 1 loss 0.1"] * 50_000
    lines[40_000:40_000] = [
        "RuntimeError: NCCL error: x",
        "Last error:",
        "",
        "Connect to 10.0.0.4<5> failed : No route to host",
    ]
    lines[20_000:20_000] = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"]
    found = read_nccl_logs([write(tmp_path / "a.log", lines)]).failures
    assert [item.name for item in found] == ["torch_oom", "connect"]
    assert [item.evidence[0].line for item in found] == [20_001, 40_005]


def test_the_number_of_a_line_is_greps(tmp_path):
    lines = ["training"] * 70_000 + log("2.18") * 3
    warning = "node1:1:2 [0] init.cc:1 NCCL WARN Invalid rank requested : 8/8"
    numbers = [1, 4_000, 69_000, len(lines) - 20, len(lines) + 5]
    for number in numbers:
        lines.insert(number - 1, warning)
    path = write(tmp_path / "a.log", lines)
    (failure,) = read_nccl_logs([path]).failures
    assert failure.times == 5
    said = [number for number, line in enumerate(lines, 1) if line == warning]
    assert [item.line for item in failure.evidence] == said[:3]
    assert failure.evidence[0].file == path


@pytest.mark.parametrize("block", [200, 1000, 1 << 18])
def test_hops_that_repeat_do_not_shift_the_number_of_a_line(monkeypatch, block):
    monkeypatch.setattr(log_files, "_BLOCK", block)
    rng = random.Random(block)
    for _ in range(20):
        hops = [f"n{i % 2}:1:{i % 3} [0] NCCL INFO Channel 0{i % 3}/0 : {i % 2}[0] -> 1[0] via P2P"
                for i in rng.choices(range(12), k=200)]  # fmt: skip
        glued = [one + two for one, two in zip(hops[:20], hops[20:40], strict=True)]
        warned = [f"n0:1:1 [0] x.cc:1 NCCL WARN thing {i % 2}" for i in range(20)]
        lines = rng.sample([*hops, *glued, *warned, *["training"] * 30], k=270)
        text = "\n".join(lines).encode()
        found = list(log_files.log_lines(io.BufferedReader(io.BytesIO(text), 64)))
        assert all(line in lines[number - 1] for number, line in found)
        told = {number for number, line in found if "WARN" in line}
        assert told == {number for number, line in enumerate(lines, 1) if "WARN" in line}
