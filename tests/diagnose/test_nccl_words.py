"""The words and codes that NCCL and torch pass on, with a warning of NCCL's own or without one."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.nccl.nccl_text import explain, report_json
from tests.diagnose.nccl_lines_made import (
    CASES,
    HEAD,
    read,
    warn,
)

LAST = (
    "RuntimeError: NCCL error in: x/NCCLUtils.cpp:93, unhandled system error, NCCL version 2.21.5\n"
)


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


@pytest.mark.parametrize("path", ["", "/usr/src/rccl/build/hipify/src/"])
def test_the_code_of_the_rank_that_failed_is_told_before_those_that_follow(path):
    lines = [f"{HEAD}NCCL INFO {path}init.cc:9 -> {code}" for code in (3, 6, 1, 3)]
    stopped = warn(f"{path}proxy.cc:1190", "Socket recv failed while polling for opId=0x7d")
    (failure,) = read(stopped, *lines).failures
    assert "ended with unhandled cuda error in init.cc" in failure.cause
    assert [item.name for item in read(stopped, *lines[:2]).failures] == ["aftermath"]


def test_the_error_code_is_told_with_the_innermost_place_of_its_thread():
    chain = [f"n1:1:2 [6] NCCL INFO {place} -> 3" for place in (
        "misc/socket.cc:47", "bootstrap.cc:90", "init.cc:1393", "group.cc:70")]  # fmt: skip
    other = "n1:1:1 [5] NCCL INFO group.cc:70 -> 3 [Async thread]"
    (failure,) = read(other, *chain).failures
    assert "misc/socket.cc" in failure.cause
    assert "another rank or thread had failed" in failure.cause
    assert "in group.cc" in read(other).failures[0].cause
