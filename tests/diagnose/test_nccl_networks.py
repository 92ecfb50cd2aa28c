"""What a log of NCCL's tells of the network, of hosts that differ, and of its groups."""

from __future__ import annotations

import json
import re

import pytest

from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines
from hpc_train.diagnose.nccl.nccl_text import explain, report_json
from tests.diagnose.nccl_jobs import USING, check, log


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
