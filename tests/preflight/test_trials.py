from __future__ import annotations

import pytest

from .trials import FAULTS, HEALTHY, RUNNING, SIGNALS, table, trial

pytestmark = pytest.mark.slow


def check(outcome):
    assert outcome.is_right, (outcome.fault, outcome.bad, outcome.summary)


# Node-local faults and signals are tested one by one elsewhere; here whatever the seed brings.
@pytest.mark.parametrize(
    "fault", ["port down", "no HCAs", "slow link", "RoCE, GIDs at different indices"]
)
def test_a_seeded_fault_on_a_random_node_is_named_and_nothing_else(tmp_path, fault):
    check(trial(fault, 1, tmp_path))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_over_many_seeded_trials_every_fault_is_named_and_nobody_falsely(tmp_path):
    outcomes = []
    for seed in range(10):
        for fault in [*FAULTS, *HEALTHY]:
            outcomes.append(trial(fault, seed, tmp_path / f"{fault}-{seed}"))
    print("\n".join(table(outcomes)))
    wrong = [item for item in outcomes if not item.is_right]
    assert not wrong, [(item.fault, item.bad, item.summary) for item in wrong]
    assert max(item.seconds for item in outcomes if item.fault in SIGNALS) < 70
    assert {item.fault for item in outcomes} >= set(RUNNING)
