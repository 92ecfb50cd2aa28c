"""A process that ends itself before the run is complete is the user's error, and nobody else's."""

from __future__ import annotations

import dataclasses

import pytest

from hpc_train.plan.states import Outcome, RankExit, RunState
from hpc_train.runs.ranks import ENDED_ITSELF
from hpc_train.supervisor.deaths import Death
from hpc_train.supervisor.evidence import AttemptEvidence, Hang
from hpc_train.supervisor.outcome import classify
from tests.supervisor.attempted import Scene, beat, scene
from tests.supervisor.test_cancels import GAVE_UP, PREEMPTED
from tests.supervisor.test_outcome import record

__all__ = ["scene"]

SILENT = AttemptEvidence(world_size=1, launcher_code=0, started=True, ranks_tell=True)


@pytest.mark.parametrize(
    ("ranks", "who"), [(1, "rank 0 ended itself"), (4, "the ranks ended themselves")]
)
def test_ranks_that_all_ended_with_0_and_without_a_word_ended_themselves(
    ranks: int, who: str
) -> None:
    ending = classify(dataclasses.replace(SILENT, world_size=ranks))
    assert ending.outcome is Outcome.USER_ERROR
    assert ending.outcome.follows.state is RunState.FAILED
    how = "with exit code 0 before the run was complete (os._exit, or exit() in C code)"
    assert ending.reason == f"{who} {how}"


@pytest.mark.parametrize(
    ("otherwise", "outcome"),
    [
        ({"started": False}, Outcome.NODE_FAILURE),
        ({"ranks_tell": False}, Outcome.COMPLETED),  # a script's exit code is its own word
        ({"launcher_code": 1}, Outcome.NODE_FAILURE),
        ({"lost_nodes": ("node1",)}, Outcome.NODE_FAILURE),
        ({"hang": Hang(reason="nothing moved")}, Outcome.HANG),
        ({"stop_outcome": Outcome.PREEMPTED, "stop_reason": "why"}, Outcome.PREEMPTED),
        ({"stop_outcome": Outcome.CANCELLED}, Outcome.CANCELLED),
        ({"deaths": [Death(rank=0, signal=9)]}, Outcome.NODE_FAILURE),
        ({"launcher_tail": "srun: error: Timed out waiting for job step"}, Outcome.NODE_FAILURE),
        ({"launcher_tail": "srun: Force Terminated StepId=3.0"}, Outcome.NODE_FAILURE),
        ({"launcher_tail": "srun: Job step aborted: Waiting up to"}, Outcome.NODE_FAILURE),
        ({"records": [record(0, 1.0, RankExit.FINISHED)]}, Outcome.COMPLETED),
    ],
)
def test_what_else_ends_a_launcher_with_0_stays_what_it_is(
    otherwise: dict[str, object], outcome: Outcome
) -> None:
    assert classify(dataclasses.replace(SILENT, **otherwise)).outcome is outcome  # type: ignore[arg-type]


def test_a_full_disk_on_which_no_rank_could_say_that_it_finished_is_told_as_that() -> None:
    ending = classify(dataclasses.replace(SILENT, disk_trouble="No space left on device"))
    assert "the run directory cannot be written: No space left" in ending.reason


CALL = "os._exit(0) before the run was complete"


@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize("hang", [None, Hang(reason="nothing moved")])
def test_the_rank_that_ended_itself_is_the_culprit_and_not_those_that_lost_it(
    others: int, hang: Hang | None
) -> None:
    own = record(0, 5.0, 1, kind=ENDED_ITSELF, error=CALL, where="model.py:12", step=7)
    lost = [record(1 + rank, 4.0, RankExit.NETWORK, kind="network") for rank in range(others)]
    seen = AttemptEvidence(
        world_size=1 + others, launcher_code=1, records=[*lost, own], hang=hang, started=True
    )
    ending = classify(seen)
    assert (ending.outcome, ending.rank, ending.where) == (Outcome.USER_ERROR, 0, "model.py:12")
    assert ending.reason == f"rank 0 on node1 ended itself at step 7: {CALL} (model.py:12)"


@pytest.mark.parametrize("stop", [Outcome.PREEMPTED, Outcome.TIMEOUT, Outcome.CANCELLED])
def test_a_handler_that_ends_the_process_when_it_is_asked_to_leave_is_no_error(
    stop: Outcome,
) -> None:
    own = record(0, 5.0, 1, kind=ENDED_ITSELF, error=CALL)
    seen = AttemptEvidence(
        world_size=1, launcher_code=1, records=[own], stop_outcome=stop, stop_reason="why"
    )
    assert classify(seen).outcome is stop


@pytest.mark.parametrize("beats", [1, 2])
def test_on_slurm_it_is_told_by_a_srun_that_says_nothing(scene: Scene, beats: int) -> None:
    for launcher, outcome in (("exit 0", Outcome.USER_ERROR), (GAVE_UP, Outcome.NODE_FAILURE)):
        attempt = scene.attempt()
        for rank in range(beats):
            beat(attempt, 3, rank)
        scene.environ["SLURMD_NODENAME"] = "n1"
        assert scene.carry_out(attempt, launcher).ending.outcome is outcome
    scene.job = PREEMPTED
    attempt = scene.attempt()
    beat(attempt, 3)
    assert scene.carry_out(attempt, "exit 0").ending.outcome is Outcome.PREEMPTED
