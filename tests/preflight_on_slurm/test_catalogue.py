"""Every fault of the catalogue once, on a node drawn by the seed: who is named, why, how soon."""

from __future__ import annotations

import os

import pytest

from benchmarks.preflight_faults import table, trials
from tests.preflight_on_slurm.catalogue import FAULTS, HEALTHY, trial
from tests.preflight_on_slurm.lab import Lab

pytestmark = pytest.mark.slurm
SEED = int(os.environ.get("HPC_TRAIN_SEED", "1"))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_node_with_the_fault_is_named_and_nobody_else(lab: Lab, fault: str) -> None:
    outcome = trial(lab, fault, SEED)
    assert not outcome.complaints(), outcome.said.document["summary"]


@pytest.mark.parametrize("layout", HEALTHY)
def test_a_healthy_cluster_is_told_to_go_with_the_right_variables(lab: Lab, layout: str) -> None:
    outcome = trial(lab, layout, SEED)
    assert not outcome.complaints(), outcome.said.document["summary"]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_over_many_seeds_every_fault_is_named_and_nobody_falsely(lab: Lab) -> None:
    outcomes = trials(lab, [*FAULTS, *HEALTHY], range(SEED + 1, SEED + 6), nodes=3)
    print("\n".join(table(outcomes)))
    assert not [(item.fault, item.complaints()) for item in outcomes if item.complaints()]
