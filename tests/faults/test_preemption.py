"""Preempted: nothing is lost, whatever grace and mode the site has."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import change_partition
from tests.faults.running import submit, until

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize(
    ("grace_s", "mode", "decision"),
    [
        (30, "REQUEUE", "requeue"),
        (5, "CANCEL", "requeue"),
        (0, "REQUEUE", "requeue"),
        (0, "CANCEL", "requeue"),
    ],
)
def test_a_preempted_run_goes_on_at_the_step_where_it_was(
    grace_s: int, mode: str, decision: str, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    change_partition(slurm_cluster, GraceTime=grace_s, PreemptMode=mode)
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=2")
    training.wait_step()
    urgent = slurm_cluster.preempt(["node1", "node2"])
    told = time.monotonic()
    until(lambda: slurm_cluster.state(urgent) == "RUNNING", "the urgent job to start", 30)
    released_s = time.monotonic() - told
    slurm_cluster.cancel(urgent)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    print(f"grace {grace_s} {mode}: {released_s:.1f} s", first, second)
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0), training.story()
    assert second["first_step"] == first["last_step"] >= 3
    assert first["decision"] == decision
