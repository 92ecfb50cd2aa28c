"""What a script's exit code 0 means: nobody but its ranks can tell whether it has trained."""

from __future__ import annotations

import pytest

from hpc_train.plan.states import Outcome
from hpc_train.supervisor.evidence import AttemptEvidence, Hang
from hpc_train.supervisor.outcome import classify
from tests.supervisor.test_outcome import record


@pytest.mark.parametrize(
    ("records", "may", "outcome", "said"),
    [
        (("left", None, 0), False, Outcome.USER_ERROR, "took no optimizer step"),
        (("left", None, 40), False, Outcome.USER_ERROR, "went on from step 40, and may have been"),
        (("left", None, 0), True, Outcome.COMPLETED, "all ranks finished"),
        (("left", 12, 0), False, Outcome.COMPLETED, "all ranks finished"),
        (("finished", None, 0), False, Outcome.COMPLETED, "all ranks finished"),
    ],
)
def test_a_script_that_ended_well_without_a_step_is_no_success_unless_it_may(
    records: tuple[str, int | None, int], may: bool, outcome: Outcome, said: str
) -> None:
    kind, step, first = records
    ranks = [record(rank, 1.0, 0, kind=kind, step=step, first_step=first) for rank in (0, 1)]
    seen = AttemptEvidence(world_size=2, launcher_code=0, records=ranks, may_take_no_steps=may)
    ending = classify(seen)
    assert ending.outcome is outcome
    assert said in ending.reason


@pytest.mark.parametrize("hang", [None, Hang(reason="nothing moved")])
def test_a_rank_that_left_with_zero_while_others_trained_is_the_culprit(hang: Hang | None) -> None:
    others = [record(rank, 2.0, 76, kind="network", step=5) for rank in (0, 2) if hang is None]
    left = record(3, 1.0, 0, kind="left", step=5)
    ending = classify(
        AttemptEvidence(world_size=4, launcher_code=1, records=[left, *others], hang=hang)
    )
    assert (ending.outcome, ending.rank) == (Outcome.USER_ERROR, 3)
    assert "left with exit code 0 behind step 5" in ending.reason
    assert classify(
        AttemptEvidence(world_size=4, launcher_code=1, records=others, hang=hang)
    ).outcome in (Outcome.NETWORK_FAILURE, Outcome.HANG)
