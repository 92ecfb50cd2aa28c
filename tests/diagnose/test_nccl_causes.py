"""What each line means: made from the format strings of NCCL, its plugins and torch."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from hpc_train.diagnose.nccl.nccl_lines import records_of
from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines, read_nccl_logs
from hpc_train.diagnose.nccl.nccl_text import explain, report_json
from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.diagnose.rules import read_rules
from hpc_train.errors import HpcTrainError

RULES = read_rules("nccl.txt")
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


VENDOR = "vendor err {0} (Send)", "vendor_err={0} Send"


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
    for block in text.split("\n== ")[1:]:
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
    assert " ? " not in failure.cause  # a word that the line does not have
    assert failure.fix
    # Where the row of reports begins; else the line that decides.
    at = 1 if name == "diverged" else len(line.splitlines())
    assert failure.evidence[0].line == at
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


def test_what_a_part_of_a_log_does_not_hold_is_not_denied():
    report = read(f"{HEAD}NCCL INFO misc/socket.cc:567 -> 2", f"{HEAD}NCCL INFO init.cc:9 -> 2")
    assert report.failures[0].cause.endswith("of which this log has no warning")


def test_what_torch_explains_about_a_word_of_nccl_is_not_what_happened():
    report = read(
        LAST.strip(),
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or"
        " device error. It can be also caused by unexpected exit of a remote peer, you can check"
        " NCCL warnings for failure reason and see if there is connection closure by a peer.",
    )
    assert [failure.name for failure in report.failures] == ["error_word"]


RESULTS = {
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed": "system",
    "[rank0]: ncclInternalError: Internal check failed.": "a check of its own",
    "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.": "invalid use",
    "InternalError: NCCL: unhandled system error. Set NCCL_DEBUG=WARN for detail.": "system",
    "RuntimeError: ncclAllReduce failed: unhandled cuda error": "a CUDA call",
}


@pytest.mark.parametrize("line", RESULTS)
def test_a_result_of_nccl_alone_is_told_without_a_reason(line):
    (failure,) = read(line).failures
    assert failure.name == "error_word"
    assert RESULTS[line] in failure.cause
    assert "no reason of NCCL's own" in failure.cause


FALLBACK = (
    f"{HEAD}NCCL INFO transport.cc:356 -> 2",
    warn("transport.cc:384", "Cannot initialize CollNet, using point-to-point network instead"),
    f"{HEAD}NCCL INFO transport/coll_net.cc:1358 -> 2",
)
OF_THE_NEXT_RANK = "gpu07:4101:4189 [1] NCCL INFO {} -> {}"


def test_a_rank_that_goes_on_without_collnet_has_not_failed():
    sharp = warn(
        "sharp_plugin.c:440", "NET/IB : SHARP coll init error: Cannot create SHARP job(-11)"
    )
    inside = [f"{HEAD}NCCL INFO {place} -> 3" for place in ("include/coll_net.h:20", "proxy.cc:9")]
    others = [OF_THE_NEXT_RANK.format(place, 2) for place in ("transport.cc:356", "init.cc:718")]
    report = read(sharp, *inside, *FALLBACK, *others)
    assert report.failures == ()
    (note,) = report.notes
    assert note.cause.endswith(
        "could not be set up: Cannot create SHARP job(-11), and it goes on without them"
    )


def test_of_a_log_of_one_rank_its_way_past_collnet_is_no_failure():
    """Only the first rank of a node warns of it."""
    assert read(OF_THE_NEXT_RANK.format("transport/coll_net.cc:1358", 2)).failures == ()
    tried = OF_THE_NEXT_RANK.format("init.cc:718", 2)
    done = COMPLETE.replace(":4100:4188", ":4101:4189")
    assert read(tried, done).failures == ()
    for goes_on in (done.replace(":4189", ":4190"), ""):
        (failure,) = read(tried, goes_on).failures
        assert failure.name == "error_code"


def test_a_failure_after_collnet_was_given_up_is_told():
    passed_up = [
        OF_THE_NEXT_RANK.format(place, 1) for place in ("transport/p2p.cc:9", "group.cc:110")
    ]
    (failure,) = read(*FALLBACK, *passed_up).failures
    assert "unhandled cuda error in transport/p2p.cc" in failure.cause
    assert [it.name for it in read(*FALLBACK, ib("12")).failures] == ["retry_exceeded"]


def test_a_socket_that_was_closed_before_is_not_the_cause():
    last = "Last NCCL warning(error) log entry (may be unrelated) 'socketTryAccept: Accept failed:"
    said = f"NCCL operation ncclCommInitRank() failed: unhandled system error. {last}"
    (failure,) = read(f"INTERNAL: {said} Bad file descriptor'.").failures
    assert failure.name == "error_word"


def test_the_word_of_a_collective_that_is_cut_is_not_told():
    cut = WORK.format(5, 7, "ALLREDUCE", 8).partition("EDUCE")[0]
    (failure,) = read(WORK.format(1, 7, "ALLREDUCE", 8), cut).failures
    assert "ALLR " not in failure.cause
    assert "common order" not in failure.cause


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


def test_every_rule_has_an_example_here():
    assert {rule.name for rule in RULES} == {case[0] for case in examples()}


def test_the_page_has_every_rule_that_tells_something():
    page = (Path(__file__).parents[2] / "docs" / "preflight.md").read_text()
    section = page.partition("## NCCL's log")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", section, re.MULTILINE)
    said = [
        (rule.name, rule.cause, rule.fix)
        for kind in ("cause", "follows", "last", "open", "note")
        for rule in RULES
        if rule.kind == kind
    ]
    assert [(name, *map(plain, rest)) for name, *rest in rows] == [
        (name, plain(cause), plain(fix)) for name, cause, fix in said
    ]


def plain(text: str) -> str:
    """Without the page's own marks."""
    for mark, said in {"\\|": "|", "\\<": "<", "[[": "[", "]]": "]"}.items():
        text = text.replace(mark, said)
    return text.strip()


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


@pytest.mark.parametrize("status", [4, 9, 11, 12, 13, 21, 5])
@pytest.mark.parametrize("form", VENDOR)
def test_the_vendors_number_is_the_logs_own(status, form):
    said = warn("a.cc:1", f"NET/IB : Got completion from peer n9<1> with status={status} opcode=0")
    (failure,) = read(f"{said} len=0 {form.format(244)} hca mlx5_3").failures
    assert "vendor err 244" in failure.cause
    (without,) = read(said).failures
    assert "vendor" not in without.cause


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
    assert (
        failure.cause == "n9 closed the connection: as a rule something failed or ended there first"
    )
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


def test_another_process_may_write_between_last_error_and_nccls_words():
    a, b = (f"(Worker pid={pid}) ERROR 01-15 02:47:32 w.py:226] " for pid in (3985, 3984))
    report = read(f"{a}ncclSystemError: System call failed.", f"{a}Last error:",
                  f'{b}  File "c10d_logger.py", line 79, in wrapper',
                  f"{a}Error while creating shared memory segment /dev/shm/a (size 9)")  # fmt: skip
    assert [item.name for item in report.failures] == ["shm"]


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
    # The thread that warned goes on; another one, or the way up of an error, does not say so.
    odd = warn("odd.cc:1", "the moon failed")
    goes_on = f"{HEAD}NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>"
    assert read(odd, goes_on).failures == ()
    for other in (goes_on.replace(":4100:", ":4101:"), f"{HEAD}NCCL INFO init.cc:1 -> 2"):
        assert len(read(odd, other).failures) == 1
    # Google's plugin says this, and goes on.
    assert read(warn("net_fastsocket.cc:765", "Cannot get incoming CPU.")).failures == ()


WORDS = {
    "unhandled cuda error": "a CUDA call inside NCCL failed",
    "unhandled system error": "a call of the system",
    "internal error": "a check of its own",
    "invalid usage": "invalid use",
    "invalid argument": "refused an argument",
    "remote process exited": "a peer ended",
    "unknown result code": "no words for",
}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    "form",
    [
        "RuntimeError: NCCL error in: x/ProcessGroupNCCL.cpp:957, {}, NCCL version 2.21.5",
        "RuntimeError: NCCL Error 2: {} (run with NCCL_DEBUG=INFO for details)",
        "node1: Test NCCL failure common.cu:958 '{} - please report this issue'",
        "RuntimeError: NCCL_ERROR: b'{}'",
        f"NCCL error encountered at: file={'x' * 200} line=33: call='ncclSend()', Reason=4:{{}}",
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
        "[rank6]:[E ProcessGroupNCCL.cpp:1896] thread terminated: [Rank 6] Watchdog caught co",
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


def test_a_collective_is_named_though_its_line_ends_before_the_time():
    line = WORK.format(5, 4476, "_ALLGATHER_BASE", 4096).partition("=600000)")[0]
    assert "_ALLGATHER_BASE number 4476" in read(line).failures[0].cause


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
    assert explain(read(*nvlink))[0] == "P2P/MNNVL between all nodes that talked in this log"


def test_what_is_made_on_one_node_alone_is_not_blamed_on_the_wire():
    line = warn("ofi_init:1", "NET/OFI Couldn't open AV. RC: -12, ERROR: Cannot allocate memory")
    (failure,) = read(line).failures
    assert "security group" not in failure.fix


def test_no_fix_for_amds_gpus_has_a_tool_of_nvidias():
    place = "/b/hipify/src/transport/p2p.cc:239"
    for text in ("hipIpcGetMemHandle failed : invalid argument", "HIP failure 'unknown error'"):
        (failure,) = read(warn(place, text)).failures
        assert "nvidia" not in failure.fix


def test_a_query_of_libfabric_is_not_told_where_a_provider_was_selected():
    line = next(line for name, line in NOTES if name == "ofi_query")
    assert [note.name for note in read(line).notes] == ["ofi_query"]
    assert read(line, next(line for name, line in NOTES if name == "ofi_selected")).notes == ()


def test_an_end_that_waits_is_told_with_its_seconds_where_it_is_more_than_one():
    line = next(line for name, line in NOTES if name == "tcpx_waits")
    (note,) = read(line).notes
    assert note.cause.startswith("10.4.0.7 waits for what 10.4.0.9 is to send")
    assert ", for 30 s by then" in note.cause
    (short,) = read(line.replace("30000000112", "500001359")).notes
    assert " s by then" not in short.cause


def test_a_fix_names_the_variable_of_the_recorder_that_every_torch_reads():
    work = WORK.format(0, 7, "ALLREDUCE", 1)
    watchdog = next(line for name, _, line in CASES if name == "watchdog")
    for line in (work, watchdog):
        (failure,) = read(line).failures
        assert "TORCH_NCCL_TRACE_BUFFER_SIZE=2000" in failure.fix
    assert not [rule.name for rule in read_rules() if "TORCH_FR_BUFFER_SIZE" in rule.fix]


def test_a_loss_scale_that_goes_down_and_a_run_that_goes_on_is_no_failure():
    said = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}"
    report = read(f"{HEAD}NCCL INFO x", *(said.format(scale) for scale in ("2.0", "1.0", "0.5")))
    assert (report.failures, [note.name for note in report.notes]) == ((), ["loss_scale"])


@pytest.mark.parametrize(
    "name",
    ["store_timeout", "store_connect", "rendezvous", "store_waits", "host_name", "port_in_use"],
)
def test_a_fix_about_the_meeting_of_ranks_names_torchruns_own_option(name):
    line = next(line for case, _, line in CASES if case == name)
    (failure,) = read(line).failures
    assert "--rdzv-endpoint" in failure.fix
    assert ("--standalone" in failure.fix) is (name == "port_in_use")


def test_a_quoted_line_that_is_too_long_keeps_its_end_and_says_that_it_was_cut():
    words = "failed : No route to host"
    line = warn("a.cc:1", f"Connect to 10.0.0.4<5> {words}")
    long = f"{'[a launcher wrote this] ' * 40}{line}"
    report = read(long)
    quoted = explain(report)[1]
    assert quoted.endswith(words)
    assert " ... " in quoted
    assert len(quoted) <= 200
    text = report.failures[0].evidence[0].text
    assert text.endswith(words)
    assert len(text) <= 300
    assert " ... " in text
    assert " ... " not in explain(read(line))[1]


def test_frames_of_a_thread_that_watches_are_no_failure():
    frame = "frame #4: c10d::ProcessGroupNCCL::watchdogHandler() + 0x1a9 (0x7f in libtorch.so)"
    assert read(frame).failures == ()


def test_a_graph_that_nccl_wrote_is_read_as_that():
    report = read('<graphs version="1">', '  <graph id="0" pattern="4">', "</graphs>")
    told = "\n".join(explain(report))
    assert "no failure is recognised" in told
    assert "no log" in told


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
    assert "if these ranks are one process group" in read(*works).failures[0].cause


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
    start = time.process_time()
    records_of(line)
    read_nccl_lines([line, "NCCL version 2.21.5"])
    assert time.process_time() - start < 1  # milliseconds; 14 s were seen


# Lines beside NCCL's, in other contexts than a failure's: each looks like what a rule knows.
LOOK_ALIKES = {
    "store_timeout": "[W socket.cpp:697] [c10d] The client socket has failed to connect to"
    " [node1]:29500 (errno: 97 - Address family not supported by protocol).",
    "host_name": "[W socket.cpp:663] [c10d] The IPv6 network addresses of (node1, 29500) cannot be"
    " retrieved (gai error: -2 - Name or service not known).",
    "host_oom": "Killed time: 3 s, oom_kill_events=0, Out of memory check passed",
    "worker_killed": "This DataLoader will create 8 worker processes: DataLoader worker (pid 3) ok",
    "xid": "user xid (PCI): 79 sold",
    "segfault": "loss of the Segmentation fault-detection head 0.3",
    "bus_error": "Bus error rate 0.1: 3 of 30 buses late",
    "no_gpu": "CUDA devices found: 8",
    "port_in_use": "Address already known, no need to bind",
    "port_denied": "The server socket is listening on port 80",
    "store_waits": "Timed out after 3 seconds waiting for the dashboard",
    "store_key": "Socket Timeouts: 0",
    "store_barrier": "Waiting in store based barrier to initialize process group for rank: 0, key:"
    " store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)",
    "rendezvous": "Rendezvous complete: RendezvousErrors 0",
    "gloo_connect": "using connectFullMesh: True",
    "barrier": "Ranks 1, 2 passed the barrier in 3 ms",
    "gloo_timeout": "Timed out waiting 3ms for the prompt",
    "ras_dead": "DEADLINE 3 considered",
    "time_limit": "time limit: 3600, CANCELLED orders 3 DUE TO weather",
    "signalled": "Process 3 got signal boost",
    "raised": "ValueError: 3 (caught, goes on)",
    "raised in a bar": " 45%|####5     | 9/20 [00:12<00:15, loss=0.3, Error: 0.1]",
    "killed": "failed (exitcode: none) local_rank: 0",
    "rank_exit": "srun: error: node1: task 3: Exited with a smile",
    "slurm_cancelled": "*** JOB 4711 ON node1 CANCELLED by hand ***",
    "store_lost": "tests/pair.cc: Connection closed by peer review",
    "address_family": "Socket creation took 3 ms",
    "ofi_test": "NET/OFI OFI NCCL ok",
    "nccl_library": "warning: undefined symbol: cublasLtCreate (weak)",
    "mlx5_completion": "mlx5: gpu07: got completion",
    "collective_mismatch": "Detected mismatch between the two configs",
    "heartbeat": "the old watchdog got stuck in the fence",
    "gpu_driver": "amdgpu 0000:1c:00.0: ring gfx initialised; nobody fell off the bus 12",
    "gpu_fault": "Memory access faults of the model: 0",
    "library": "UserWarning: Failed to load image Python extension: undefined symbol: jpeg_x",
    "not_started": "execve: torchrun train.py",
    "not_launched": "Task launch for StepId=7.0 on node3 took 3 s",
    "slurm_refused": "srun: Unable to say how long",
    "ssh": "Permission denied twice, then granted; ssh ended with exit code 0",
    "slots": "there are enough slots available in the system",
    "disk_full": "Space left on device: 3 TiB, no quota",
    "ray_worker": "A worker died-in-the-wool",
    "horovod_stall": "One or more tensors were moved to the GPU",
    "wrong_results": "# Out of bounds values : 0 OK",
    "ucx_said": "UCX ERRORS: 0",
    "mpi_abort": "MPI_ABORT was never invoked",
    "mpi_daemon": "ORTE was able to start",
    "command_missing": "mesh: 3 vertices not found; sh: ok",
    "ends_with": "RuntimeError: retrying 3 of 5",
    "cuda_kernel": "TORCH_USE_CUDA_DSA enables device-side assertions; an illegal move",
    "a death signal": "Received 3 death signals in the game",
    "Python logger": "2026-11-21 08:04:51 WARN trainer.py:3 connection to wandb failed",
    "rendezvous at the end": "The node 'n1_1_0' has failed to shutdown the rendezvous '77' due to"
    " an error of type RendezvousConnectionError.",
    "CPU worker": "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "nccl_dump": "<systems version='1'>",
    "ofi_query": "libfabric:85:1747438790::core:core:fi_getinfo_():1392<info> fi_getinfo: x",
    "mpi_unreachable": "At least one pair of MPI processes was started",
    "NVIDIA's words in prose": "if you see CUDA out of luck, see the FAQ of NCCL",
}


STEPS = [f"step {number} loss 0.3" for number in range(6)]


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_only_looks_like_a_failure_is_none(name):
    started = f"{HEAD}NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>"
    report = read(started, LOOK_ALIKES[name], *STEPS)
    assert (report.failures, report.notes, report.warnings) == ((), (), ())


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_log_without_a_failure_or_a_line_of_nccls_is_refused(name):
    with pytest.raises(HpcTrainError, match="no line of NCCL's"):
        read(LOOK_ALIKES[name], *STEPS)


@pytest.mark.parametrize("name", ["store_timeout", "port_in_use", "raised", "worker_killed"])
def test_what_was_overcome_is_no_failure_beside_nccls_lines_either(name):
    lines = next(line for case, _, line in CASES if case == name)
    assert [item.name for item in read(*lines.splitlines()).failures] == [name]
    report = read(*lines.splitlines(), COMPLETE)
    assert report.failures == ()
    assert read(*lines.splitlines(), "# Avg bus bandwidth    : 178.4").failures == ()


RETRY = f"{HEAD}NCCL INFO Call to connect returned Connection refused, retrying"
HOP = f"{HEAD}NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"


BESIDE = ("[RANK 1]", "(Actor", "torch/lib")


def test_a_failure_of_cuda_without_nccls_head_is_found_among_other_lines(tmp_path):
    lines = [*STEPS, "worker3: Cuda failure 802 'system not yet initialized'", *STEPS]
    (tmp_path / "a.log").write_text("\n".join(lines))
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert (failure.name, failure.evidence[0].line) == ("system_not_ready", len(STEPS) + 1)


@pytest.mark.parametrize("name", ["collective_kinds", "mlx5_completion", "nccl_library"])
def test_a_failure_is_found_in_a_file_of_other_lines_alone(tmp_path, name):
    line = next(line for case, _, line in CASES if case == name and line.startswith(BESIDE))
    (tmp_path / "a.log").write_text(f"(Actor pid=3) step 1\n{line}\n(Actor pid=3) ends\n")
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert (failure.name, failure.evidence[0].line) == (name, 2)


@pytest.mark.parametrize("goes_on", [HOP, "step 1 loss 0.3", COMPLETE])
def test_tries_of_a_connection_are_a_failure_only_where_a_log_ends_with_them(tmp_path, goes_on):
    for name, lines, is_failure in (
        ("never", [HOP, RETRY, RETRY, ""], True),
        ("once", [HOP, RETRY], False),
        ("overcome", [HOP, RETRY, RETRY, goes_on], False),
        ("again", [HOP, RETRY, goes_on, RETRY, RETRY], True),
    ):
        (tmp_path / name).write_text("\n".join(lines))
        names = [item.name for item in read_nccl_logs([str(tmp_path / name)]).failures]
        assert names == ["connect_retrying"] * is_failure, name


def test_of_several_logs_one_that_ends_with_tries_of_a_connection_is_enough(tmp_path):
    for name, lines in (("a.log", [RETRY, RETRY]), ("b.log", [HOP])):
        (tmp_path / name).write_text("\n".join(lines))
    (failure,) = read_nccl_logs([str(tmp_path)]).failures
    assert failure.name == "connect_retrying"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("Call to connect returned Connection refused, retrying", "the peer could not be"),
        (
            "connect to 10.0.0.4<5> returned Connection timed out, retrying (1/34) after sleep",
            "10.0.0.4<5> could not be",
        ),
    ],
)
def test_endless_tries_are_told_with_what_the_line_holds(form, said):
    (failure,) = read(*[f"{HEAD}NCCL INFO {form}"] * 3).failures
    assert failure.cause.startswith(said)
    assert failure.times == 3


@pytest.mark.parametrize("width", [40, 60, 90, 100, 116, 200])
def test_a_line_of_the_watchdog_is_read_whatever_width_wrapped_it(tmp_path, width):
    line = (
        "[rank6]:[E429 13:55:49.384372190 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0 Rank 6]"
        " ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress"
    )
    parts = [line[at : at + width] for at in range(0, len(line), width)]
    (tmp_path / "a.log").write_text("\n".join([*parts, "Traceback (most recent call last):"]))
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert failure.name == "heartbeat"


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


def test_a_failure_beside_a_warning_that_tells_nothing_is_still_told():
    harmless = warn("configure_nvls_option:287", "NET/OFI Could not find ncclGetVersion symbol")
    assert read(harmless).failures == ()
    fails = warn("x:1", "NET/OFI Could not find the memory's provider")
    assert [item.name for item in read(harmless, fails).failures] == ["ofi"]


ROOT = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-21_08:04:51
  host      : node1
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 4711)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_08:04:51
  host      : node2
  rank      : 3 (local_rank: 1)
  exitcode  : {} (pid: 4712)
  error_file: <N/A>
============================================================"""


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("-9", "killed", "rank 3 was killed"),
        ("-11", "segfault", "native code"),
        ("1", "rank_exit", "rank 3 ended with exit code 1; why"),
        ("-6", "rank_exit", "with SIGABRT"),
        ("137", "killed", "rank 3 was killed"),
    ],
)
def test_torchruns_root_cause_names_rank_and_host(tmp_path, code, name, said):
    (tmp_path / "a.log").write_text("step 1\n" * 9 + ROOT.format(code))
    for report in (read(ROOT.format(code)), read_nccl_logs([str(tmp_path / "a.log")])):
        (failure,) = report.failures
        assert (failure.name, failure.hosts) == (name, ("node2",))
        assert said in failure.cause


def test_a_line_of_torchs_is_not_the_rest_of_a_warning():
    stuck = "[E1 ProcessGroupNCCL.cpp:1484] ProcessGroupNCCL's watchdog got stuck for 300 seconds"
    report = read(warn("transport/p2p.cc:944", "rank 0 did IPC register userbuff"), stuck)
    assert [item.evidence[0].line for item in report.failures] == [2]


def test_a_process_that_the_launcher_ended_is_not_the_first():
    others = ROOT.partition("Root Cause")[0]
    killed = "  traceback : Signal 9 (SIGKILL) received by PID 4711"
    cut = f"{others}{killed}\nRoot Cause (first observed failure):\n[0]:\n  rank      : 1"
    for report in (read(others, killed), read(cut)):
        assert [failure.name for failure in report.failures] == ["child_failed"]
    (failure,) = read(others, killed, ROOT.format("1")).failures
    assert failure.name == "rank_exit"


RAISED = ["[rank3]: Traceback (most recent call last):", "[rank3]: KeyError: 'labels'"]


def test_a_rank_that_raised_first_is_the_root_of_what_the_others_say():
    timeout = WORK.format(0, 7, "ALLREDUCE", 1)
    closed = warn("misc/socket.cc:57", "socketProgress: Connection closed by remote peer n1<5>")
    names = [item.name for item in read(*RAISED, timeout).failures]
    assert names == ["raised", "collective_timeout"]
    assert [item.name for item in read(*RAISED, closed).failures] == ["raised"]
    assert [item.name for item in read(closed, *RAISED).failures] == ["peer_closed"]
    # A cause that is known says more, and what the launcher says of the end less.
    assert [item.name for item in read(*RAISED, ib("12")).failures] == ["retry_exceeded"]
    assert [item.name for item in read(ROOT.format(1), *RAISED).failures] == ["raised"]


@pytest.mark.parametrize(
    "lines",
    [
        ["Exception ignored in: <function f>", *RAISED],
        [RAISED[0], "ConnectionResetError: [Errno 104] Connection reset by peer"],
        [RAISED[0], "  File 'a.py', line 1, in f", "    raise ValueError"],
    ],
)
def test_a_traceback_that_is_no_ones_own_failure_is_not_told(lines):
    with pytest.raises(HpcTrainError):
        read(*lines)


RAS = """NCCL version 2.26.2 compiled with CUDA 12.6
Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  {}
"""


BEHIND = """7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 16 on node node1"""
AHEAD = """30 ranks have launched up to operation 640
  2 ranks have launched up to operation 641
  Rank 12 -- GPU 4 managed by process 3 on node 10.0.0.4
  Rank 13 -- GPU 5 managed by process 4 on node 10.0.0.4"""
NONE = """3 ranks have launched up to operation 1
  Rank 0 has not launched any operations -- [process information not found]"""


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (BEHIND, "7 ranks at 64; 1 rank (7 on node1) at 60"),
        (AHEAD, "30 ranks at 640; 2 ranks (12-13 on 10.0.0.4) at 641"),
        (NONE, "3 ranks at 1; 1 rank (0) at none"),
    ],
)
def test_a_report_of_ncclras_tells_which_ranks_are_at_another_operation(tmp_path, lines, said):
    (tmp_path / "ras.txt").write_text(RAS.format(lines))
    for report in (read(RAS.format(lines)), read_nccl_logs([str(tmp_path / "ras.txt")])):
        (note,) = report.notes
        assert said in note.cause
        assert "AllReduce" in note.cause
        assert report.version == "2.26.2"
        assert report.failures == ()  # the counts of a moment, which ncclras calls a warning


@pytest.mark.parametrize("between", ["failed :", "failed : No ro", "Connect to 10."])
def test_a_warning_that_a_terminal_wrapped_is_read_as_one(tmp_path, between):
    line = warn("misc/socket.cc:1", "socketPoll: Connect to 10.0.0.4<5> failed : No route to host")
    cut = line.index(between) + len(between)
    wrapped = [line[:cut], line[cut:].lstrip() if between == "failed :" else line[cut:]]
    (tmp_path / "a.log").write_text("\n".join(["x", *wrapped, "step 1 loss 2"]))
    for report in (read(*wrapped), read_nccl_logs([str(tmp_path / "a.log")])):
        assert [item.name for item in report.failures] == ["connect"]
        assert report.warnings == ()
    # What another one says is no rest.
    others = read(line[:cut], f"{HEAD}NCCL INFO {line[cut:]}").failures
    assert "connect" not in [item.name for item in others]


LINE = warn("misc/ibvwrap.cc:187", "Call to ibv_modify_qp failed with 110")
BUS = (
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared"
    " memory (shm)."
)
KILLED = (
    "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that"
    " dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
)
BEFORE = ("", "[1,3]<stderr>:", "12: ", "[rank3]: ", "[default3]:")


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("said", [BUS, KILLED])
@pytest.mark.parametrize("width", [60, 72, 80, 100, 120])
def test_words_of_shared_memory_are_read_whatever_width_wrapped_them(before, said, width, tmp_path):
    parts = [said[at : at + width] for at in range(0, len(said), width)]
    (tmp_path / "a.log").write_text("\n".join(["step 1", *(before + part for part in parts)]))
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert failure.name == "worker_shm"


@pytest.mark.parametrize("before", BEFORE)
def test_a_warning_that_was_wrapped_behind_a_launchers_prefix_is_read_as_one(before):
    said = warn("misc/socket.cc:1", "socketPoll: Connect to 10.0.0.4<5> failed :")
    (failure,) = read(before + said, f"{before}No route to host").failures
    assert failure.name == "connect"


DRESSED = {
    "docker's JSON": json.dumps({"log": LINE + "\n", "stream": "stderr", "time": "2026"}),
    "a logger's JSON": json.dumps({"level": "error", "message": f"x\n{LINE}"}),
    "colours": f"\x1b[31m{LINE[:20]}\x1b[0m{LINE[20:]}\x1b[0m",
    "docker compose": f"worker-1  | {LINE}",
    "mpirun": f"[1,0]<stderr>:{LINE}",
    "srun -l": f"12: {LINE}",
    "ray": f"(Worker pid=4711, ip=10.0.0.2) {LINE}",
    "kubectl": f"[pod/train-0/pytorch] 2026-11-21T08:04:51.123Z {LINE}",
}


@pytest.mark.parametrize("dress", DRESSED)
def test_a_line_is_read_in_whatever_a_container_or_launcher_puts_around_it(tmp_path, dress):
    (tmp_path / "a.log").write_text(DRESSED[dress] + "\n")
    report = read_nccl_logs([str(tmp_path / "a.log")])
    assert [item.name for item in report.failures] == ["gid_timeout"]
    assert report.speakers == ("gpu07",)


def test_the_error_code_is_told_with_the_innermost_place_of_its_thread():
    chain = [f"n1:1:2 [6] NCCL INFO {place} -> 3" for place in (
        "misc/socket.cc:47", "bootstrap.cc:90", "init.cc:1393", "group.cc:70")]  # fmt: skip
    other = "n1:1:1 [5] NCCL INFO group.cc:70 -> 3 [Async thread]"
    (failure,) = read(other, *chain).failures
    assert "misc/socket.cc" in failure.cause
    assert "another rank or thread had failed" in failure.cause
    assert "in group.cc" in read(other).failures[0].cause


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


def test_a_metric_whose_name_has_the_word_hides_no_failure_and_costs_little(tmp_path):
    lines = [f"step {i} mean Error: 0.{i}" for i in range(100_000)]
    lines.insert(90_000, "RuntimeError: CUDA error: device-side assert triggered")
    (tmp_path / "a.log").write_text("\n".join(lines))
    start = time.process_time()
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert time.process_time() - start < 1.5  # 0.2 s; 4 s where each line is looked at
    assert failure.evidence[0].line == 90_001


def test_nothing_is_said_of_nccl_where_the_log_has_nothing_of_it():
    told = "\n".join(explain(read(*RAISED)))
    assert "KeyError: 'labels'" in told
    assert "NCCL" not in told
