"""A rank that ended with 0 in C code, and what must not be taken for that."""

from __future__ import annotations

from typing import Any

import pytest

from hpc_train.plan.states import RankExit
from hpc_train.runs.ranks import ENDED_ITSELF, Heartbeat
from hpc_train.supervisor.silent_ends import silent_ends
from tests.supervisor.test_outcome import record

FIRST = "srun: error: node1: task 0: Exited with exit code 76\n"
ENDS = "srun: launch/slurm: _step_signal: Terminating StepId=6.0\n"
LAST = "srun: error: node3: task 2: Exited with exit code 76\n"


def lost(rank: int, **more: Any) -> Any:
    return record(rank, 5.0, more.pop("code", RankExit.NETWORK), **{"kind": "network", **more})


def beat(rank: int, step: int = 5, **more: Any) -> Heartbeat:
    known = {"pid": 1, "time": 4.0, "moved": 4.0, "phase": "train", "steps": 100, **more}
    return Heartbeat(rank=rank, node=f"node{rank + 1}", step=step, **known)


BEATS = [beat(rank) for rank in range(3)]


@pytest.mark.parametrize("more", ["", "srun: Force Terminated StepId=6.0\n", "noise of a module\n"])
def test_the_rank_of_which_a_whole_srun_says_nothing_ended_itself(more: str) -> None:
    records = [lost(0, step=5), lost(2, step=5)]
    early = [BEATS[0], beat(1, step=0, phase="start", steps=None), BEATS[2]]
    (found,) = silent_ends(FIRST + ENDS + LAST + more, records, early, 3)
    assert (found.rank, found.node, found.step) == (1, "node2", 5)
    assert (found.kind, found.code) == (ENDED_ITSELF, 1)
    assert found.error.startswith("exit code 0 before the run was complete")


def test_it_may_be_one_of_two_and_two_of_three() -> None:
    assert [it.rank for it in silent_ends(FIRST, [lost(0)], BEATS[:2], 2)] == [1]
    assert [it.rank for it in silent_ends(LAST, [lost(2)], BEATS, 3)] == [0, 1]


@pytest.mark.parametrize(
    "said",
    [
        "",
        FIRST,  # not of all that have failed: a quiet srun
        FIRST + ENDS + LAST + "srun: error: node2: task 1: Killed\n",
        FIRST + ENDS + LAST + "srun: error: node2: task 1: Exited with exit code 76\n",
        FIRST + ENDS + LAST + "srun: error: Node failure on node2\n",
        FIRST + ENDS + LAST + "srun: error: Timed out waiting for job step to complete\n",
        FIRST + ENDS + LAST + "srun: Job step aborted: Waiting up to 32 seconds\n",
        FIRST + ENDS + LAST + "srun: forcing job termination\n",
        FIRST + ENDS + LAST + "slurmstepd: error: *** STEP 6.0 ON node1 CANCELLED AT 2026 ***\n",
        FIRST + ENDS + LAST + "srun: error: io error with slurmstepd on node 1\n",
    ],
)
def test_where_srun_says_more_or_less_it_is_left_open(said: str) -> None:
    assert silent_ends(said, [lost(0), lost(2)], BEATS, 3) == []


@pytest.mark.parametrize(
    ("records", "beats"),
    [
        ([], BEATS),
        ([lost(0), lost(1), lost(2)], BEATS),
        ([lost(0), lost(2, kind="storage")], BEATS),
        ([lost(0), lost(2, code=1, kind="user")], BEATS),
        ([lost(0), lost(2)], [BEATS[0], BEATS[2]]),
        ([lost(0), lost(2)], [BEATS[0], beat(1, phase="end"), BEATS[2]]),
        ([lost(0), lost(2)], [BEATS[0], beat(1, step=100), BEATS[2]]),
    ],
)
def test_other_ends_of_the_ranks_are_no_such_case(records: Any, beats: Any) -> None:
    assert silent_ends(FIRST + ENDS + LAST, records, beats, 3) == []
