"""What is advised about a collective that did not end follows from what the log shows."""

from __future__ import annotations

import re

import pytest

from tests.diagnose.nccl_lines_made import WORK, read

APART = "do differently there"
STATE = (
    "[rank{0}]:[E ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID {2}(default_pg) Rank {0}] Exception"
    " (either an error or timeout) detected by watchdog at work: {1}, last enqueued NCCL work: 9,"
    " last completed NCCL work: 6."
)
LONG = "Timeout(ms)=1800000"


def failure(*lines: str):
    (found,) = read(*lines).failures
    return found


TWO = {
    "another collective": [(0, 7, "ALLREDUCE", 1), (1, 7, "BROADCAST", 1)],
    "another number": [(0, 5, "ALLREDUCE", 1), (1, 7, "ALLREDUCE", 1)],
    "another size": [(0, 7, "_ALLGATHER_BASE", 8), (1, 7, "_ALLGATHER_BASE", 9)],
}


@pytest.mark.parametrize("name", TWO)
def test_ranks_that_left_the_common_order_are_told_only_what_mends_that(name):
    works = [WORK.format(*work) for work in TWO[name]]
    likely = failure(*works)
    assert "if these ranks are one process group, they left" in likely.cause
    states = [STATE.format(rank, seq, 0) for rank, seq, *_ in TWO[name]]
    certain = failure(*works, *states)
    is_one_number = name != "another number"
    assert ("wait in different collectives within 600 s: " in certain.cause) is is_one_number
    assert ("some of these ranks are ahead, or left" in certain.cause) is not is_one_number
    for found in (likely, certain):
        assert APART in found.fix
        assert "longer timeout" not in found.fix
        assert "NCCL_P2P_DISABLE" not in found.fix


SAME = {
    "one collective": [(0, 7, "ALLREDUCE", 1), (1, 7, "ALLREDUCE", 1)],
    "a pair": [(0, 7, "SEND", 1), (1, 9, "RECV", 1)],
    "parts of many sizes": [(0, 7, "ALLTOALL_BASE", 1), (1, 7, "ALLTOALL_BASE", 2)],
    "ranks that are in several groups": [(0, 7, "ALLREDUCE", 1), (0, 9, "BROADCAST", 1)],
}


@pytest.mark.parametrize("name", SAME)
def test_ranks_that_may_be_in_order_are_not_told_to_have_left_it(name):
    found = failure(*(WORK.format(*work) for work in SAME[name]))
    assert "common order" not in found.cause
    assert APART not in found.fix


def test_ranks_of_two_groups_have_not_left_the_order_of_one():
    works = [WORK.format(*work) for work in TWO["another number"]]
    found = failure(*works, STATE.format(0, 5, 1), STATE.format(1, 7, 2))
    assert "common order" not in found.cause


def test_a_line_into_which_another_process_wrote_is_read():
    works = [
        WORK.format(*work).replace("operation", "operatsome words of anotherion")
        for work in TWO["another size"]
    ]
    assert "number 7 (8 elements) on rank 0" in failure(*works).cause


def test_a_longer_timeout_is_not_advised_where_nothing_shows_that_a_rank_was_slow():
    work = WORK.format(0, 7, "ALLREDUCE", 1)
    for line in (work, work.replace("Timeout(ms)=600000", LONG)):
        assert "timeout" not in failure(line).fix
    assert "set a timeout" in failure("Map: 45%|", work).fix


def test_where_the_log_proves_who_did_not_come_it_is_not_asked():
    absent = "[rank0]: [3] finished collective #6, but didn't join collective #7 (count 1)"
    found = failure(WORK.format(0, 7, "ALLREDUCE", 1), absent)
    assert "never joined it: ranks 3" in found.cause
    assert found.fix.startswith("why did they not come?")
    assert "all_reduce_perf" not in found.fix


def test_data_that_was_being_prepared_is_told_first():
    work = WORK.format(1, 2, "ALLREDUCE", 1).replace("Timeout(ms)=600000", LONG)
    bar = "Generating train split: 99 examples [29:59, 1466.92 examples/s]"
    for lines in ([bar + work], [bar, work]):
        assert failure(*lines).fix.startswith("the log tells of data that was still being prepared")
    assert "prepared" not in failure(bar, *["step 1"] * 3, work).fix


def test_a_timeout_while_saving_asks_for_all_ranks():
    work = WORK.format(2, 8, "ALLGATHER", 1)
    fix = failure("INFO:accelerate.accelerator:Saving FSDP model", work).fix
    assert fix.startswith("the log tells of saving just before: with FSDP or ZeRO all ranks must")
    assert "longer timeout" not in fix
    assert "saving just before" not in failure("epoch 1 done", work).fix


@pytest.mark.parametrize("name", TWO)
def test_the_flight_recorder_is_advised_where_torch_may_have_it(name):
    works = [WORK.format(*work) for work in TWO[name]]
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" in failure(*works).fix
    old = [re.sub(r"NumelIn=\d+, NumelOut=\d+, ", "", work) for work in works]
    found = failure(*old)
    assert "flight recorder" not in found.fix
    assert "py-spy dump" in found.fix
