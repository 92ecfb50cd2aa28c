"""The proof on a real Slurm: after mixed faults, every step is what it would have been."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import submit, until
from tests.ledger import compare, read_ledger

pytestmark = pytest.mark.slurm

STEPS = 120
WORK = ("slurm.nodes=2", "model.init_args.ledger=true", f"trainer.max_steps={STEPS}")


def test_a_run_that_met_four_faults_equals_an_undisturbed_one_step_by_step(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    cluster = slurm_cluster
    reference = submit(cluster, tmp_path, *WORK, "name=reference", "model.init_args.step_s=0")
    assert reference.wait_end() == "completed"
    cluster.wait(reference.job_id, "COMPLETED")

    training = submit(
        cluster, tmp_path, *WORK, "checkpoint.every_n_steps=7", "model.init_args.step_s=0.1"
    )
    training.wait_step(0, new=5)
    urgent = cluster.preempt(list(training.records()[0].nodes))
    until(lambda: cluster.state(urgent) == "RUNNING", "the urgent job to start", 40)
    cluster.cancel(urgent)
    training.wait_step(1, new=9)
    os.kill(training.pids(training.records()[1].nodes[1])[0], signal.SIGKILL)
    training.wait_step(2, new=5)
    os.kill(training.pids(training.records()[2].nodes[0])[0], signal.SIGTERM)
    training.wait_step(3, new=5)
    cluster.scontrol("requeue", training.job_id)
    assert training.wait_end(timeout_s=120) == "completed"

    attempts = training.status()["attempts"]
    outcomes = [attempt["outcome"] for attempt in attempts]
    assert outcomes == ["preempted", "node_failure", "preempted", "preempted", "completed"]
    assert [attempt["steps_lost"] > 0 for attempt in attempts] == [False, True, *[False] * 3]
    result = compare(
        read_ledger(reference.run.path / "ledger"), read_ledger(training.run.path / "ledger")
    )
    assert result.problems == []
    assert result.steps == STEPS
    assert result.retaken == attempts[1]["steps_lost"]
