"""What NCCL itself says in a log: versions, launchers, torn and interleaved lines."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.diagnose.nccl.nccl_log import LogReader, read_nccl_lines, read_nccl_logs
from hpc_train.diagnose.nccl.nccl_text import explain
from hpc_train.errors import HpcTrainError
from tests.diagnose.nccl_jobs import VERSIONS, check, log


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
