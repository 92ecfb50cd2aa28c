"""What each line means: made from the format strings of NCCL, its plugins and torch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.diagnose.nccl.nccl_text import explain, report_json
from hpc_train.diagnose.rules import read_rules
from tests.diagnose.nccl_lines_made import (
    CASES,
    COMPLETE,
    HEAD,
    NOTES,
    REFUSED,
    examples,
    ib,
    read,
    warn,
)

RULES = read_rules("nccl.txt")

# What is known of them is that something ended, and nothing that holds for all such logs follows.
AT_FIRST = (
    *("diverged", "cancelled_at_start", "limit_at_start", "slurm_many_jobs", "slurm_memory"),
)
NO_FIX = {"raised", "ends_with", "rank_exit"}

VENDOR = "vendor err {0} (Send)", "vendor_err={0} Send"


@pytest.mark.parametrize(("name", "said", "line"), CASES, ids=[case[0] for case in CASES])
def test_a_failure_is_told_with_its_cause_its_line_and_a_fix(name, said, line):
    report = read(line)
    assert [failure.name for failure in report.failures] == [name]
    (failure,) = report.failures
    assert said in failure.cause
    assert " ? " not in failure.cause  # a word that the line does not have
    assert bool(failure.fix) is (name not in NO_FIX)
    # Where the row of reports begins; else the line that decides.
    at = 1 if name in AT_FIRST else len(line.splitlines())
    assert failure.evidence[0].line == at
    lines = explain(report)
    assert lines[0].startswith("failed: ")
    assert any(text.startswith("  fix: ") for text in lines) is bool(failure.fix)


@pytest.mark.parametrize(("name", "line"), NOTES)
def test_what_is_no_failure_is_not_told_as_one(name, line):
    report = read(line)
    assert report.failures == ()
    (kind,) = {rule.kind for rule in RULES if rule.name == name}
    assert (len(report.notes) == 1) is (kind == "note")


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


def test_every_rule_has_an_example_here():
    assert {rule.name for rule in RULES} == {case[0] for case in examples()}


def test_the_page_has_every_rule_that_tells_something():
    page = (Path(__file__).parents[2] / "docs" / "preflight.md").read_text()
    section = page.partition("## NCCL's log")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", section, re.MULTILINE)
    said = [
        (rule.name, rule.cause, rule.fix or "none")
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


def test_the_proxys_accept_is_not_blamed_on_the_network():
    report = read(
        warn("misc/ibvwrap.cc:115", "Call to ibv_reg_mr_iova2 failed"),
        warn("proxy.cc:1517", "[Service thread] Accept failed Cannot allocate memory"),
    )
    assert [item.name for item in report.failures] == ["ib_call"]
    tried = warn("misc/socket.cc:1", "socketTryAccept: Accept failed: Too many open links")
    assert [item.name for item in read(tried).failures] == ["socket"]


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
