"""What is said of hosts, ranks, networks and settings, and what not, where a log is a part."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.nccl.nccl_log import read_nccl_logs
from hpc_train.diagnose.nccl.nccl_text import explain
from hpc_train.diagnose.read_logs import ReadLogs
from tests.diagnose.nccl_lines_made import (
    HEAD,
    REFUSED,
    ib,
    read,
    warn,
)


def test_hosts_that_wrote_a_line_are_hosts_of_the_log_with_or_without_a_rank():
    started = "ncclCommInitRank comm 0x1 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 61000 commId 0x1"
    report = read(
        "node1:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
        f"node2:1:2 [0] NCCL INFO {started} - Init START",
    )
    assert report.hosts == ("node1", "node2")
    assert "2 hosts in this log" in "\n".join(explain(report))


def test_what_a_part_of_a_log_does_not_hold_is_not_denied():
    report = read(f"{HEAD}NCCL INFO misc/socket.cc:567 -> 2", f"{HEAD}NCCL INFO init.cc:9 -> 2")
    assert report.failures[0].cause.endswith("of which this log has no warning")


def test_a_list_of_hcas_that_is_cut_and_a_transport_that_is_cut_are_not_told():
    report = read(
        f"{HEAD}NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx",
        f"{HEAD}NCCL INFO Channel 00 : 0[1a000] -> 1[1b000] via P2",
    )
    assert report.hcas == {}
    assert report.pairs == ()


def test_a_host_whose_name_is_torn_is_no_second_one():
    report = read(
        "worker-23:83:2526 [0] NCCL INFO Using network Socket",
        "[15]23:83:2526 [0] net_socket.cc:219 NCCL WARN NET/Socket : socket progress error",
    )
    assert report.speakers == ("worker-23",)


OF_ADDRESS = "comm 0x{0} rank {0} nranks 2 cudaDev 0 busId 1 commId 0xa - Init COMPLETE"


def test_hosts_that_are_named_by_the_first_part_of_their_address_are_not_counted():
    """NCCL ends a host's name at its first dot."""
    lines = [f"192:41{rank}:42 [0] NCCL INFO {OF_ADDRESS.format(rank)}" for rank in (0, 1)]
    report = read(*lines, REFUSED.replace("gpu07", "192"))
    told = "\n".join(explain(report))
    assert "on host 192" not in told
    assert "(on 192)" not in told
    assert "hosts called 192 (perhaps the first part of addresses)" in told
    logs = ReadLogs()
    for number, line in enumerate([*lines, REFUSED.replace("gpu07", "192")]):
        logs.feed(line, "", number)
    assert (logs.findings()[0].node, logs.findings()[0].nodes) == ("", ())
    two = "\n".join(explain(read(lines[0], lines[1].replace("192:", "10:"))))
    assert "2 hosts" not in two
    longer = [line.replace("192", f"100{rank}") for rank, line in enumerate(lines)]
    assert "2 ranks on 2 hosts" in "\n".join(explain(read(*longer)))


@pytest.mark.parametrize("clock", ["10:00:05", "2026-01-01T10:00:05"])
def test_a_time_is_no_host(clock):
    assert read(f"{clock} [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>").hosts == ()
    of_a_host = read(f"{clock} n1:41:42 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>")
    assert of_a_host.hosts == ("n1",)


def test_a_setting_that_a_log_ends_with_may_be_cut_and_is_not_told():
    said = f"{HEAD}NCCL INFO NCCL_TOPO_FILE set by environment to /opt/t"
    assert read(said).settings == {}
    assert read(said, f"{HEAD}NCCL INFO x").settings == {"NCCL_TOPO_FILE": "/opt/t"}


def test_a_memory_that_is_not_the_gpus_is_not_told_as_it():
    report = read(f"{HEAD}NCCL INFO x", "java.lang.OutOfMemoryError: Java heap space")
    assert [failure.name for failure in report.failures if failure.name == "torch_oom"] == []


def test_ranks_that_finished_are_not_called_all_that_began():
    lines = [
        f"{HEAD}NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x1 - Init START",
        "n2:1:1 [0] NCCL INFO comm 0x1 rank 1 nranks 2 cudaDev 0 busId 1 commId 0x1 - Init START",
        f"{HEAD}NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x1 - Init COMPLETE",
    ]
    assert explain(read(*lines))[0].startswith("ranks in this log finished")


def test_an_hca_that_died_is_not_told_as_one_that_cannot_be_opened():
    lost = warn("transport/net_ib.cc:80", "NET/IB : Got async event : local catastrophic error")
    events = warn("misc/ibvwrap.cc:220", "Call to ibv_get_async_event failed")
    report = read(lost, events)
    assert [failure.name for failure in report.failures] == ["hca_fatal"]
    assert "cable" not in report.failures[0].fix
    assert report.notes == ()


def test_every_interface_of_a_socket_plugin_is_told_and_none_is_an_hca():
    ways = "Using [0]enp0s12:10.0.0.6<0> [1]enp6s0f0:10.0.1.4<0>"
    report = read(f"{HEAD}NCCL INFO NET/FastSocket : {ways}")
    assert report.interfaces == {"gpu07": ("enp0s12:10.0.0.6", "enp6s0f0:10.0.1.4")}
    assert report.hcas == {}


def test_an_hca_is_called_unused_only_where_all_ranks_are_in_the_log():
    lines = [
        f"node{rank}:{rank}:1 [0] NCCL INFO {text}"
        for rank in (0, 1)
        for text in (
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",
            f"Channel 00/0 : {rank}[0] -> {1 - rank}[0] [send] via NET/IB/0",
            f"comm 0x{rank} rank {rank} nranks 2 cudaDev 0 busId 1 commId 0xa - Init COMPLETE",
        )
    ]
    assert "not used: mlx5_1:1/IB" in "\n".join(explain(read(*lines)))
    assert "not used" not in "\n".join(explain(read(*lines[:3])))


def test_a_verbs_layer_without_a_device_is_no_network_that_was_found():
    report = read(f"{HEAD}NCCL INFO NET/IB : Using [RO]; OOB eth0:10.0.0.1<0>")
    assert report.networks == ()


def test_one_failure_of_many_hosts_is_told_once_with_their_folded_names():
    lines = [ib("12").replace("gpu07", f"gpu{i:03d}") for i in range(512)]
    told = explain(read(*lines))
    assert "(on gpu[000-511])" in told[0]
    assert len(told) < 12


@pytest.mark.parametrize(("suffix", "said"), [("", "none of it"), ("/GDRDMA", "with GPUDirect")])
def test_how_much_goes_by_gpudirect_is_told(suffix, said):
    lines = [
        f"node{rank}:{rank}:1 [0] NCCL INFO {text}"
        for rank in (0, 1)
        for text in (
            f"Channel 00/0 : {rank}[0] -> {1 - rank}[0] [send] via NET/IB/0{suffix}",
            f"comm 0x{rank} rank {rank} nranks 2 cudaDev 0 busId 1 commId 0xa - Init COMPLETE",
        )
    ]
    assert said in explain(read(*lines))[0]
    nvlink = [line.replace("NET/IB/0", "P2P/MNNVL") for line in lines]
    assert explain(read(*nvlink))[0] == "P2P/MNNVL between all nodes that talked in this log"


def test_a_graph_that_nccl_wrote_is_read_as_that():
    report = read('<graphs version="1">', '  <graph id="0" pattern="4">', "</graphs>")
    told = "\n".join(explain(report))
    assert "no failure is recognised" in told
    assert "no log" in told


def test_a_torn_line_makes_no_second_communicator():
    comm = "comm 0x{0} rank {0} nranks 2 cudaDev {0} busId 1 commId 0x7 - Init COMPLETE"
    hop = f"{HEAD}NCCL INFO Channel 00 : 1[1] -> 0[0] via SHM/direct/direct"
    torn = f"{HEAD}NCCL INFO comm 0x1 rank 1 nranks 2 cudaDev 0{HEAD}NCCL INFO Trees [0] -1"
    ends = [f"{HEAD}NCCL INFO {comm.format(rank)}" for rank in (0, 1)]
    begin = f"{HEAD}NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>"
    told = "\n".join(explain(read(begin, torn, hop, *ends)))
    assert "2 ranks on host gpu07" in told
    assert "of that size" not in told
    other = [line.replace("0x7", "0x8") for line in ends]
    assert "(2 of that size)" in "\n".join(explain(read(begin, torn, hop, *ends, *other)))


def test_what_an_hca_could_and_what_a_channel_does_are_not_said_against_each_other():
    gdr = f"{HEAD}NCCL INFO NET/IB : GPU Direct RDMA %s for HCA 0 'mlx5_0'"
    hop = f"{HEAD}NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via NET/IBext_v10/0"
    told = explain(read(gdr % "Enabled", hop))
    assert told[0] == "InfiniBand (or RoCE) between all nodes that talked in this log"
    assert "  no channel in this log is marked as using it (/GDRDMA)" in told
    assert "none of it with GPUDirect" in explain(read(gdr % "Disabled", hop))[0]
    marked = "\n".join(explain(read(gdr % "Enabled", f"{hop}/GDRDMA")))
    assert "with GPUDirect RDMA" in marked
    assert "no channel" not in marked


def test_ranks_that_only_their_end_names_are_ranks_of_the_log():
    end = "comm 0x{0} rank {0} nranks 4 cudaDev 0 busId 1 - {1} COMPLETE"
    lines = [f"{HEAD}NCCL INFO {end.format(0, 'Init')}"]
    lines += [f"{HEAD}NCCL INFO {end.format(rank, 'Abort')}" for rank in (0, 1, 2)]
    assert "this log shows at least ranks 0-2" in "\n".join(explain(read(*lines)))
    whole = [*lines, f"{HEAD}NCCL INFO {end.format(3, 'Destroy')}"]
    told = explain(read(*whole))
    assert "4 ranks on host gpu07" in told[1]
    assert "finished their initialisation" in told[0]


@pytest.mark.parametrize("form", ["RCCL version 2.20.5+hip6.2", "RCCL version : 2.20.5-HEAD:45"])
def test_amds_library_is_called_by_its_name(tmp_path, form):
    (tmp_path / "a.log").write_text(f"{form}\n{HEAD}NCCL INFO ROCr version 1.14\n")
    report = read_nccl_logs([str(tmp_path / "a.log")])
    assert explain(report)[1] == "RCCL 2.20.5, host gpu07"


def test_one_rank_is_not_ranks():
    comm = "comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1 - Init COMPLETE"
    assert "1 rank on host gpu07" in explain(read(f"{HEAD}NCCL INFO {comm}"))[1]
