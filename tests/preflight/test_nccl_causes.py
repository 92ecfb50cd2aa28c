"""What each line means: made from the format strings of NCCL, its plugins and torch."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from hpc_train.preflight.nccl.nccl_causes import RULES
from hpc_train.preflight.nccl.nccl_lines import records_of
from hpc_train.preflight.nccl.nccl_log import read_nccl_lines
from hpc_train.preflight.nccl.nccl_text import explain, report_json

HEAD = "gpu07:4100:4188 [3] "


def warn(place: str, text: str) -> str:
    return f"{HEAD}{place} NCCL WARN {text}"


def ib(status: str, place: str = "transport/net_ib.cc:1295") -> str:
    """A failed completion as 2.14 to 2.26 write it."""
    return warn(
        place,
        f"NET/IB : Got completion from peer 10.1.0.9<41234> with status={status} opcode=0 len=0"
        " vendor err 129 (Send) localGid fe80::1 remoteGids fe80::2 hca mlx5_3",
    )


LAST = (
    "RuntimeError: NCCL error in: x/NCCLUtils.cpp:93, unhandled system error, NCCL version 2.21.5\n"
)
WORK = (
    "[rank{0}]:[E ProcessGroupNCCL.cpp:629] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran"
    " for 600021 milliseconds before timing out."
)


def examples() -> list[tuple[str, str, str]]:
    """(rule, words of its cause, lines of a log); see the file."""
    text = (Path(__file__).parent / "nccl_failures.txt").read_text()
    found = []
    for block in text.split("== ")[1:]:
        head, _, lines = block.partition("\n")
        name, _, said = head.partition(":")
        found.append((name, said.strip(), lines.strip()))
    return found


CASES = [case for case in examples() if case[1]]
NOTES = [(name, line) for name, said, line in examples() if not said]


def read(*lines: str):
    return read_nccl_lines("\n".join(lines).splitlines())


@pytest.mark.parametrize(("name", "said", "line"), CASES, ids=[case[0] for case in CASES])
def test_a_failure_is_told_with_its_cause_its_line_and_a_fix(name, said, line):
    report = read(line)
    assert [failure.name for failure in report.failures] == [name]
    (failure,) = report.failures
    assert said in failure.cause
    assert failure.fix
    assert failure.evidence[0].line == len(line.splitlines())
    lines = explain(report)
    assert lines[0].startswith("failed: ")
    assert any(text.startswith("  fix: ") for text in lines)


@pytest.mark.parametrize(("name", "line"), NOTES)
def test_what_is_no_failure_is_not_told_as_one(name, line):
    report = read(line)
    assert report.failures == ()
    (kind,) = {rule.kind for rule in RULES if rule.name == name}
    assert (len(report.notes) == 1) is (kind == "note")


def test_hosts_that_wrote_a_line_are_hosts_of_the_log_with_or_without_a_rank():
    started = "ncclCommInitRank comm 0x1 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 61000 commId 0x1"
    report = read(
        "node1:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
        f"node2:1:2 [0] NCCL INFO {started} - Init START",
    )
    assert report.hosts == ("node1", "node2")
    assert "2 hosts in this log" in "\n".join(explain(report))


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


def test_every_rule_has_an_example_here():
    assert {rule.name for rule in RULES} == {case[0] for case in examples()}


def test_the_page_has_every_rule_that_tells_something():
    page = (Path(__file__).parents[2] / "docs" / "preflight.md").read_text()
    section = page.partition("## NCCL's log")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", section, re.MULTILINE)
    said = [
        (rule.name, rule.cause, rule.fix)
        for kind in ("cause", "follows", "note")
        for rule in RULES
        if rule.kind == kind
    ]
    assert [(name, *map(plain, rest)) for name, *rest in rows] == [
        (name, plain(cause), plain(fix)) for name, cause, fix in said
    ]


def plain(text: str) -> str:
    """Without the page's own marks."""
    return text.replace("\\|", "|").replace("\\<", "<").strip()


FORMS = [
    "gpu07:4100:4188 [3] misc/ibvwrap.cc:187 NCCL WARN ",
    "gpu07:4100:4188 [3] ibvwrap.c:262 NCCL WARN ",
    "gpu07:4100:4188 [3] transport.cu:153 NCCL WARN ",
    "gpu07:4100:4188 [3] register_mr_buffers:465 NCCL WARN ",
    "gpu07:4100:4188 [3] misc/ibvwrap.cc:379 (wrap_ibv_modify_qp) NCCL WARN ",
    "[2026-03-13 22:26:02] gpu07:4100:4188 [3] misc/ibvwrap.cc:187 NCCL WARN ",
    "12: [1,3]<stdout>:gpu07:4100:4188 [3] misc/ibvwrap.cc:187 NCCL WARN ",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_warning_is_read_whatever_names_its_place(form):
    report = read(form + "Call to ibv_modify_qp failed with 110")
    assert report.failures[0].name == "gid_timeout"
    assert report.speakers == ("gpu07",)


@pytest.mark.parametrize("form", ["[3] misc/ibvwrap.cc:187 NCCL WARN ", "NCCL WARN "])
def test_a_warning_without_its_process_counts_as_well(form):
    report = read(form + "Call to ibv_modify_qp failed with 110")
    assert report.failures[0].name == "gid_timeout"


def test_a_flood_hides_neither_the_root_nor_how_much_was_dropped():
    closing = [
        f"gpu{i:02d}:{i + 1}:{i + 2} [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection"
        f" closed by remote peer node{i}<{40000 + i}>"
        for i in range(60)
    ]
    strange = [warn("x.cc:1", f"value {'abcdefghij'[i % 10]}{i} is off") for i in range(60)]
    report = read(*closing, *strange, ib("12"), *closing)
    assert [failure.name for failure in report.failures] == ["retry_exceeded"]
    assert len(report.warnings) == 50
    assert report.dropped == 10
    assert "10 lines not kept" in explain(report)[-1]
    assert len(explain(report)) < 20


def test_only_what_follows_is_left_is_told_as_such():
    report = read(
        warn("proxy.cc:1143", "Socket recv failed while polling for opId=0x7fa"),
        *[warn("misc/socket.cc:49", "socketProgress: Connection closed by remote peer n9<1>")] * 60,
    )
    (failure,) = report.failures
    assert failure.cause == "n9 closed the connection: something failed or ended there first"
    assert failure.times == 60
    assert "read that node's log" in failure.fix


def test_one_failure_of_many_hosts_is_told_once_with_their_folded_names():
    lines = [ib("12").replace("gpu07", f"gpu{i:03d}") for i in range(512)]
    told = explain(read(*lines))
    assert "(on gpu[000-511])" in told[0]
    assert len(told) < 12


def test_a_better_rule_stands_for_both():
    report = read(*[line for name, _, line in CASES if name in ("shm_size", "shm")])
    assert [failure.name for failure in report.failures] == ["shm_size"]


@pytest.mark.parametrize("blank", ["", "\n", "[rank3]: "])
def test_what_follows_last_error_is_nccls_own_word(blank):
    head = f"[rank3]: {LAST}[rank3]: ncclSystemError: System call failed.\n"
    report = read(f"{head}[rank3]: Last error:\n{blank}socketStartConnect: Connect to 10.0.0.4<5>"
                  " failed : No route to host")  # fmt: skip
    assert report.failures[0].name == "connect"
    assert report.version == "2.21.5"


def test_last_error_on_the_same_line_counts():
    report = read(
        "what(): NCCL error: remote process exited, NCCL version 2.14.3 ncclRemoteError: x Last"
        " error: NET/IB : Got completion from peer 11.2.1.2<3> with error 12, opcode 0, len 0,"
        " vendor err 129"
    )
    assert report.failures[0].name == "retry_exceeded"


def test_an_error_code_without_a_warning_is_told():
    trace = f"{HEAD}NCCL INFO bootstrap.cc:285 -> 2 (No route to host)"
    (failure,) = read(trace, f"{HEAD}NCCL INFO init.cc:1534 -> 2").failures
    assert "system error (No route to host) in bootstrap.cc" in failure.cause
    assert (
        read(warn("init.cc:1", "Invalid rank requested : 8/8"), trace).failures[0].name
        != failure.name
    )


def test_an_error_code_that_may_be_expected_is_none():
    quiet = [
        f"{HEAD}NCCL INFO {place} -> 3" for place in ("plugin/net.cc:340", "misc/socket.cc:58")
    ]
    assert read(*quiet, f"{HEAD}NCCL INFO Failed to initialize NET plugin IB").failures == ()


def test_a_failure_without_a_known_cause_is_a_failure_without_a_cause():
    report = read(warn("odd.cc:1", "frobnication failed"))
    (failure,) = report.failures
    assert failure.cause == ""
    assert report_json(report)["cause"] is None
    assert "that this reader does not know" in explain(report)[0]
    assert read(warn("odd.cc:1", "the moon is full")).failures == ()
    # Google's plugin says this, and goes on.
    assert read(warn("net_fastsocket.cc:765", "Cannot get incoming CPU.")).failures == ()


WORDS = {
    "unhandled cuda error": "a CUDA call inside NCCL failed",
    "unhandled system error": "a call of the system",
    "internal error": "a check of its own",
    "invalid usage": "invalid use",
    "invalid argument": "refused an argument",
    "remote process exited": "a peer ended",
}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    "form",
    [
        "RuntimeError: NCCL error in: x/ProcessGroupNCCL.cpp:957, {}, NCCL version 2.21.5",
        "RuntimeError: NCCL Error 2: {} (run with NCCL_DEBUG=INFO for details)",
        "node1: Test NCCL failure common.cu:958 '{} - please report this issue'",
    ],
)
def test_the_word_that_is_passed_on_is_told_where_nccls_own_is_missing(word, form):
    (failure,) = read(form.format(word)).failures
    assert WORDS[word] in failure.cause
    own = warn("init.cc:722", "Invalid rank requested : 8/8")
    assert [item.name for item in read(form.format(word), own).failures] == ["invalid_use"]


@pytest.mark.parametrize(
    "line",
    [
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=385",
        "1% 24/1752 [rank5]:[E602 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective op",
        "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<x>) + 0x1d2 (0x15)",
    ],
)
def test_a_timeout_whose_line_is_cut_is_one_all_the_same(line):
    (failure,) = read(line).failures
    assert failure.name == "collective_timeout"
    assert "did not end in time" in failure.cause


def test_torch_names_the_collective_its_number_and_the_ranks():
    lines = [WORK.format(rank, 1580, "ALLREDUCE", 4096) for rank in (0, 1, 2, 4)]
    (failure,) = read(*lines).failures
    assert failure.name == "collective_timeout"
    assert "ALLREDUCE number 1580 (4096 elements) on ranks 0-2,4" in failure.cause
    assert "600 s" in failure.cause


def test_a_rank_that_never_came_is_named_where_the_log_proves_it():
    signal = (
        "[rank3]:[E ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a"
        " dump signal due to a collective timeout from  rank 0 and we will try our best to dump the"
        " debug info. Last enqueued NCCL work: 1579, last completed NCCL work: 1579."
    )
    lines = [WORK.format(rank, 1580, "ALLREDUCE", 1) for rank in (0, 1, 2)]
    assert "never joined it: ranks 3" in read(*lines, signal).failures[0].cause
    assert "never joined" not in read(*lines).failures[0].cause


def test_a_coalesced_collective_has_no_number_of_elements():
    """torch prints the -1 that stands for none as unsigned."""
    cause = read(WORK.format(0, 2, "COALESCED", 2**64 - 1)).failures[0].cause
    assert "COALESCED number 2 on rank 0" in cause


def test_a_rank_is_not_late_by_the_numbers_of_another_group_or_of_none():
    work = WORK.format(0, 1580, "ALLREDUCE", 1)
    state = (
        "[rank0]:[E ProcessGroupNCCL.cpp:1664] [PG ID 2 PG GUID 7(tp) Rank 0] Exception (either an"
        " error or timeout) detected by watchdog at work: 1580, last enqueued NCCL work: 1580, last"
        " completed NCCL work: 1579."
    )
    signal = (
        "[rank3]:[E ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a"
        " dump signal due to a collective timeout from  rank 0 and we will try our best to dump the"
        " debug info. Last enqueued NCCL work: {0}, last completed NCCL work: {0}."
    )
    assert "never joined" not in read(work, state, signal.format(12)).failures[0].cause
    assert "never joined" not in read(work, signal.format(-1)).failures[0].cause
    assert "ranks 3" in read(work, signal.format(12)).failures[0].cause


COMPLETE = f"{HEAD}NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0xa - Init COMPLETE"
REFUSED = warn("misc/ibvwrap.cc:171", "Call to ibv_create_qp failed with error x")


def test_a_warning_that_an_initialisation_overcame_is_no_failure():
    report = read(REFUSED, warn("odd.cc:1", "frobnication failed"), COMPLETE)
    assert report.failures == ()
    assert "this was overcome: the verbs library refused" in "\n".join(explain(report))
    assert report_json(report)["cause"] is None
    assert read(COMPLETE, REFUSED).failures[0].name == "ib_call"
    # Something did stop: the root is told, wherever it stands.
    (failure,) = read(REFUSED, COMPLETE, f"{HEAD}NCCL INFO init.cc:9 -> 2").failures
    assert failure.name == "ib_call"


def test_a_warning_before_the_connections_that_closed_is_the_root():
    closed = warn("misc/socket.cc:57", "socketProgress: Connection closed by remote peer n1<5>")
    unknown = warn("odd.cc:1", "frobnication failed")
    (failure,) = read(unknown, closed).failures
    assert (failure.name, failure.cause) == ("warning", "")
    assert failure.evidence[0].text == unknown
    assert [item.name for item in read(closed, unknown).failures] == ["peer_closed"]


def test_a_fix_does_not_speak_of_efa_alone_where_libfabric_may_be_another_ones():
    line = warn("register_mr_buffers:647", "NET/OFI Unable to register memory (type = 2) for"
                " device 5. RC: -22, Error: Invalid argument")  # fmt: skip
    (failure,) = read(line).failures
    assert failure.name == "ofi_registration"
    assert failure.fix.startswith("one CUDA driver library")


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
    assert explain(read(*nvlink))[0] == "P2P/MNNVL between all nodes that talked"


def test_a_first_collective_that_hangs_is_not_only_blamed_on_a_rank_that_did_not_come():
    (failure,) = read(WORK.format(1, 1, "BROADCAST", 1)).failures
    assert "data does not move" in failure.fix


def test_a_timeout_that_only_its_state_tells_has_its_number_and_rank():
    (failure,) = read(
        "[rank2]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 2] Timeout at NCCL work: 1474236, last"
        " enqueued NCCL work: 1474236, last completed NCCL work: 1474235."
    ).failures
    assert failure.name == "collective_timeout"
    assert "number 1474236 on rank 2" in failure.cause


def test_the_proxys_accept_is_not_blamed_on_the_network():
    report = read(
        warn("misc/ibvwrap.cc:115", "Call to ibv_reg_mr_iova2 failed"),
        warn("proxy.cc:1517", "[Service thread] Accept failed Cannot allocate memory"),
    )
    assert [item.name for item in report.failures] == ["ib_call"]
    tried = warn("misc/socket.cc:1", "socketTryAccept: Accept failed: Too many open links")
    assert [item.name for item in read(tried).failures] == ["socket"]


@pytest.mark.parametrize("path", ["", "/usr/src/rccl/build/hipify/src/"])
def test_the_code_of_the_rank_that_failed_is_told_before_those_that_follow(path):
    lines = [f"{HEAD}NCCL INFO {path}init.cc:9 -> {code}" for code in (3, 6, 1, 3)]
    stopped = warn(f"{path}proxy.cc:1190", "Socket recv failed while polling for opId=0x7d")
    (failure,) = read(stopped, *lines).failures
    assert "ended with unhandled cuda error in init.cc" in failure.cause
    assert [item.name for item in read(stopped, *lines[:2]).failures] == ["aftermath"]


def test_the_desync_report_names_who_is_late():
    report = read(
        WORK.format(0, 7, "ALLREDUCE", 1),
        "\t   - [0, 2] joined but didn't finish collective #7 (count from 1)",
        "\t     [1] finished collective #6, but didn't join collective #7 (count from 1)",
    )
    assert "never joined it: ranks 1" in report.failures[0].cause


def test_ranks_of_one_group_in_two_collectives_have_left_the_common_order():
    state = (
        "[rank{0}]:[E ProcessGroupNCCL.cpp:1664] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Exception"
        " (either an error or timeout) detected by watchdog at work: 7, last enqueued NCCL work: 7,"
        " last completed NCCL work: 6."
    )
    works = [WORK.format(0, 7, "ALLREDUCE", 1), WORK.format(1, 7, "BROADCAST", 1)]
    states = [state.format(0), state.format(1)]
    assert "different collectives" in read(*works, *states).failures[0].cause
    # Without the groups the two may be two groups' own.
    cause = read(*works).failures[0].cause
    assert "different collectives" not in cause
    assert "if these ranks are one process group, they left the common order" in cause
    works = [WORK.format(0, 7, "ALLREDUCE", 1), WORK.format(1, 8, "BROADCAST", 1)]
    assert "common order" not in read(*works).failures[0].cause


@pytest.mark.parametrize("what", ["creating", "attaching to"])
def test_shared_memory_that_cuda_refused_is_not_blamed_on_dev_shm(what):
    """misc/shmutils.cc says the second line after every failure, that of CUDA included."""
    place = "misc/shmutils.cc"
    report = read(
        warn(f"{place}:103", "Cuda failure 1 'invalid argument'"),
        warn(
            f"{place}:114",
            f"Error while {what} shared memory segment /dev/shm/nccl-NzwJ7O (size 9)",
        ),
    )
    assert [item.name for item in report.failures] == ["cuda_shm"]


def test_a_proxy_that_a_system_call_failed_is_told_before_the_connections_it_closed():
    report = read(
        warn("misc/socket.cc:49", "socketProgress: Connection closed by remote peer gpu07<53735>"),
        warn(
            "proxy.cc:1519",
            "[Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 2",
        ),
    )
    assert [item.name for item in report.failures] == ["proxy_system"]


def test_what_the_network_did_comes_before_the_timeout_it_brought_about():
    report = read(WORK.format(0, 7, "ALLREDUCE", 1), ib("12"))
    assert [item.name for item in report.failures] == ["retry_exceeded", "collective_timeout"]


@pytest.mark.parametrize(
    "line",
    [
        "w" * 65_536,
        "w" * 65_000 + " NCCL WARN " + "x" * 400,
        "a:1:" * 16_384,
        " NCCL INFO " * 6_000,
        "NCCL WARN Got completion from peer " + "p" * 65_000,
        "NCCL WARN Cuda failure " + "'" * 65_000,
        "Last error: Connect to " + "1" * 65_000,
    ],
)
def test_no_line_of_64_kb_takes_long(line):
    start = time.perf_counter()
    records_of(line)
    read_nccl_lines([line, "NCCL version 2.21.5"])
    assert time.perf_counter() - start < 1  # milliseconds; 14 s were seen
