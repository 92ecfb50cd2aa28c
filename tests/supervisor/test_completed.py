"""A training is complete by its ranks' word, not by their launcher's."""

from __future__ import annotations

import pytest

from hpc_train.plan.states import Outcome, RankExit
from hpc_train.runs.ranks import ExitRecord
from hpc_train.supervisor.evidence import AttemptEvidence
from hpc_train.supervisor.outcome import classify
from tests.supervisor.test_outcome import record


@pytest.mark.parametrize(
    ("records", "ranks_tell", "outcome"),
    [
        ([record(0, 1.0, RankExit.FINISHED)], True, Outcome.COMPLETED),
        ([], True, Outcome.NODE_FAILURE),
        ([], False, Outcome.COMPLETED),  # a script of another framework leaves no record
        ([record(0, 1.0, RankExit.SAVED, cause="SIGTERM")], True, Outcome.PREEMPTED),
        ([record(0, 1.0, RankExit.SAVED, cause="SIGTERM")], False, Outcome.PREEMPTED),
    ],
)
def test_a_launcher_that_ends_well_completes_nothing_that_the_ranks_did_not(
    records: list[ExitRecord], ranks_tell: bool, outcome: Outcome
) -> None:
    """As srun does where Slurm sets its only node down."""
    seen = AttemptEvidence(
        world_size=2,
        launcher_code=0,
        records=records,
        ranks_tell=ranks_tell,
        launcher_tail="srun: error: a word of it",
        started=True,
    )
    ending = classify(seen)
    assert ending.outcome is outcome
    if outcome is Outcome.NODE_FAILURE:
        assert (
            ending.reason == "the launcher exited 0 and no rank says why: srun: error: a word of it"
        )
