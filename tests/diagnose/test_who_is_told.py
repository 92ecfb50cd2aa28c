"""Whose failure it is: every rank and host that says so, or a word that there are others."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.diagnosis import Culprit, Diagnosis, told
from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.diagnose.rules import Evidence
from tests.diagnose.nccl_lines_made import WORK, ib, warn

STUCK = (
    "[rank{0}]:[E1204 11:00:0{0}.5 ProcessGroupNCCL.cpp:1316] [PG 0 Rank {0}] Heartbeat monitor"
    " timed out! Process will be terminated after dumping debug info. workMetaList_.size()=1"
)
LOST = (
    "[rank{0}]:[W318 10:00:41.9 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=9,"
    " addr=[a]:1, remote=[b]:2): Connection reset by peer"
)


def finding(*lines: str) -> Culprit:
    logs = ReadLogs()
    for number, line in enumerate(lines, 1):
        logs.feed(line, "", number)
    return logs.findings()[0]


def test_all_ranks_that_say_so_are_told():
    found = finding(*(STUCK.format(rank) for rank in (4, 1, 2, 4)))
    assert found.who.startswith("ranks 1-2,4, 12-04 11:00:0")
    assert (found.rank, found.ranks) == (4, (1, 2, 4))
    assert found.to_json()["ranks"] == [1, 2, 4]


def test_all_hosts_that_say_so_are_told():
    lines = [ib("4", f"transport/net_ib.cc:{n}").replace("gpu07", f"gpu0{n}") for n in (7, 3, 4)]
    assert finding(*lines).who == "on gpu[03-04,07]"


def test_the_rest_of_a_torn_host_is_no_host():
    lines = [ib("4"), ib("4").replace("gpu07", "u07")]
    assert finding(*lines, warn("a.cc:1", "x")).who == "on gpu07"


def test_who_tells_of_another_is_told_as_that():
    found = finding(*(LOST.format(rank) for rank in (8, 12)))
    assert found.who == "told by ranks 8,12, 03-18 10:00:41"
    assert (found.rank, found.told_by) == (None, (8, 12))


def test_a_rank_that_asks_another_for_nccls_id_is_the_one_that_tells():
    line = (
        "RuntimeError: [14] is setting up NCCL communicator and retrieving ncclUniqueId from [0]"
        " via c10d key-value store by key '0', but store->get('0') got error: Connection reset by"
        " peer. This may indicate a possible application crash on rank 0 or a network set up issue."
    )
    assert finding(line).told_by == (14,)


def test_ranks_of_lines_that_were_passed_over_may_be_others():
    lines = [f"[rank{rank}]: RuntimeError: CUDA out of memory" for rank in range(120)]
    assert finding(*lines).who == "ranks 0-119 among others"


NAMED = (
    "Duplicate GPU detected : rank {0} and rank 0 both on CUDA device 1b000",
    "NET/IB : Got completion from peer 10.0.0.{0}<4100> with error 12, opcode 0, len 0",
    "No transport found for rank {0}[1b000] -> rank 0[1a000]",
)


@pytest.mark.parametrize("text", NAMED)
def test_a_sentence_that_names_one_of_several_does_not_stand_alone(text):
    lines = [warn("a.cc:1", text.format(rank)) for rank in (3, 3, 5)]
    found = finding(*lines)
    assert found.alike.startswith("1 more line of this kind, such as: ")
    assert "rank 5" in found.alike or "10.0.0.5" in found.alike
    assert not finding(*lines[:2]).alike


def test_ranks_are_those_of_the_sentence_that_is_told():
    asked = "[rank{0}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {1}.00 GiB."
    found = finding(*(asked.format(rank, 2 + rank // 2) for rank in range(4)))
    assert found.who == "ranks 0-1"
    assert found.alike.startswith("2 more lines of this kind, such as: ")


AT = (
    "[rank{0}]:[E1204 11:00:00.5 ProcessGroupNCCL.cpp:1664] [PG {2} Rank {0}] Exception (either an"
    " error or timeout) detected by watchdog at work: {1}, last enqueued NCCL work: 9, last"
    " completed NCCL work: 6."
)


def test_ranks_that_stood_at_the_same_number_are_told_beside_those_that_timed_out():
    said = [WORK.format(0, 7, "ALLREDUCE", 8), WORK.format(4, 7, "ALLREDUCE", 8)]
    cause = finding(*said, AT.format(0, 7, 1), AT.format(3, 7, 1)).cause
    assert cause.endswith("on ranks 0,4; rank 3 stood at that number as well")
    for other in (AT.format(3, 8, 1), AT.format(3, 7, 2), AT.format(4, 7, 1)):
        assert finding(*said, AT.format(0, 7, 1), other).cause.endswith("on ranks 0,4")


def test_numbers_at_which_ranks_stood_are_told_with_all_of_their_ranks():
    line = AT.replace("Exception (either", "Timeout at NCCL work. Exception (either")
    cause = finding(*(line.format(rank, 7, 1) for rank in range(9))).cause
    assert "number 7 on ranks 0-8" in cause
    cause = finding(*(line.format(rank, rank, 1) for rank in range(6))).cause
    assert cause.endswith("number 3 on rank 3, and 2 other numbers")


def test_a_report_of_ncclras_tells_all_hosts_and_says_where_ranks_are_left_out():
    head = "Communicator ranks have different AllReduce operation counts"
    ranks = [f"Rank {n} -- GPU 0 managed by process 9 on node n{n}" for n in range(1, 6)]
    logs = ReadLogs()
    for number, line in enumerate([head, "6 ranks have launched up to operation 7", *ranks], 1):
        logs.feed(line, "", number)
    (note,) = logs.diagnosis("a").notes
    assert "6 ranks (1-5 among others on n[1-5]) at 7" in note
    assert logs.findings() == ()


def test_a_line_of_the_culprit_keeps_its_end_and_no_half_of_a_number():
    text = f"step {'1234567 ' * 60}RuntimeError: the words at the end"
    first = Culprit(name="a", cause="c", fix="f", evidence=(Evidence(file="a", line=7, text=text),))
    quoted = next(line for line in told(Diagnosis(of="x", findings=(first,))) if " a:7: " in line)
    assert quoted.endswith("RuntimeError: the words at the end")
    assert len(quoted) <= 200
    before, _, after = quoted.partition(" ... ")
    assert {*before.split()[2:], *after.split()[:-6]} == {"1234567"}


def test_what_does_not_fit_ends_between_two_words():
    long = Culprit(name="a", cause=f"ranks {' '.join(['0-127,'] * 40)}", fix="f")
    first = Culprit(name="a", cause="c", fix="f")
    lines = [*told(Diagnosis(of="x", findings=(first, *[long] * 7)))]
    also = [line for line in lines if line.startswith("also: ")]
    assert all(len(line) <= 200 for line in also)
    assert also[0].endswith("0-127, ...")
    assert also[-1] == "also: 2 more (--json has them)"
