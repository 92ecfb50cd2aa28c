"""Collectives that ran out of time: which, by how much, and which rank did not come."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.nccl.nccl_log import read_nccl_logs
from hpc_train.diagnose.rules import read_rules
from tests.diagnose.nccl_lines_made import (
    COMPLETE,
    HEAD,
    NOTES,
    WORK,
    ib,
    read,
)


def test_the_word_of_a_collective_that_is_cut_is_not_told():
    cut = WORK.format(5, 7, "ALLREDUCE", 8).partition("EDUCE")[0]
    (failure,) = read(WORK.format(1, 7, "ALLREDUCE", 8), cut).failures
    assert "ALLR " not in failure.cause
    assert "common order" not in failure.cause


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


def test_an_end_that_waits_is_told_with_its_seconds_where_it_is_more_than_one():
    line = next(line for name, line in NOTES if name == "tcpx_waits")
    (note,) = read(line).notes
    assert note.cause.startswith("10.4.0.7 waits for what 10.4.0.9 is to send")
    assert ", for 30 s by then" in note.cause
    (short,) = read(line.replace("30000000112", "500001359")).notes
    assert " s by then" not in short.cause


def test_a_fix_names_the_variable_of_the_recorder_that_every_torch_reads():
    work = WORK.format(0, 7, "ALLREDUCE", 1)
    (failure,) = read(work).failures
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE=2000" in failure.fix
    assert not [rule.name for rule in read_rules() if "TORCH_FR_BUFFER_SIZE" in rule.fix]


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


def test_what_the_network_did_comes_before_the_timeout_it_brought_about():
    report = read(WORK.format(0, 7, "ALLREDUCE", 1), ib("12"))
    assert [item.name for item in report.failures] == ["retry_exceeded", "collective_timeout"]


RETRY = f"{HEAD}NCCL INFO Call to connect returned Connection refused, retrying"

HOP = f"{HEAD}NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"


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
