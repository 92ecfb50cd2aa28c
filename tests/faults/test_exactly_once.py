"""The proof on a real Slurm: after mixed faults, every step is what it would have been."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import Training, submit, until
from tests.ledger import compare, read_ledger

pytestmark = pytest.mark.slurm

STEPS = 120
# From three ranks on, the order of a sum shows in the last bit of the weights, in an MLP's too.
WORK = (
    "global_batch_size=12",
    "model.init_args.ledger=true",
    "model.init_args.hidden=16",
    f"trainer.max_steps={STEPS}",
)


def undisturbed(cluster: Cluster, folder: Path, nodes: str) -> Training:
    reference = submit(cluster, folder, *WORK, nodes, "name=reference", "model.init_args.step_s=0")
    assert reference.wait_end() == "completed"
    cluster.wait(reference.job_id, "COMPLETED")
    return reference


def assert_equal(reference: Training, training: Training, *, retaken: int) -> None:
    result = compare(
        read_ledger(reference.run.path / "ledger"), read_ledger(training.run.path / "ledger")
    )
    assert result.problems == []
    assert result.steps == STEPS
    assert result.retaken == retaken


def test_a_run_that_met_four_faults_equals_an_undisturbed_one_step_by_step(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    cluster, nodes = slurm_cluster, "slurm.nodes=3"
    reference = undisturbed(cluster, tmp_path, nodes)
    training = submit(
        cluster, tmp_path, *WORK, nodes, "checkpoint.every_n_steps=7", "model.init_args.step_s=0.25"
    )
    training.wait_step(0, new=5)
    urgent = cluster.preempt(list(training.records()[0].nodes))
    until(lambda: cluster.state(urgent) == "RUNNING", "the urgent job to start", 120)
    cluster.cancel(urgent)
    training.wait_step(1, new=9)
    os.kill(training.pids(training.records()[1].nodes[1])[0], signal.SIGKILL)
    training.wait_step(2, new=5)
    os.kill(training.pids(training.records()[2].nodes[0])[0], signal.SIGTERM)
    training.wait_step(3, new=5)
    cluster.scontrol("requeue", training.job_id)
    assert training.wait_end(timeout_s=300) == "completed"

    attempts = training.status()["attempts"]
    outcomes = [attempt["outcome"] for attempt in attempts]
    assert outcomes == ["preempted", "node_failure", "preempted", "preempted", "completed"]
    assert [attempt["steps_lost"] > 0 for attempt in attempts] == [False, True, *[False] * 3]
    assert_equal(reference, training, retaken=attempts[1]["steps_lost"])


def test_on_four_nodes_stops_soon_after_one_another_change_nothing_either(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(nodes="node[1-4]", cluster_name="four", accounting=False)
    nodes = "slurm.nodes=4"
    reference = undisturbed(cluster, tmp_path, nodes)
    often = ("checkpoint.every_n_steps=7", "model.init_args.step_s=0.2")
    training = submit(cluster, tmp_path, *WORK, nodes, *often)
    for attempt, (node, number) in enumerate(((3, signal.SIGTERM), (0, signal.SIGTERM))):
        training.wait_step(attempt, new=1)
        os.kill(training.pids(training.records()[attempt].nodes[node])[0], number)
    training.wait_step(2, new=9)
    os.kill(training.pids(training.records()[2].nodes[2])[0], signal.SIGKILL)
    assert training.wait_end(timeout_s=300) == "completed"
    attempts = training.status()["attempts"]
    assert [attempt["outcome"] for attempt in attempts[:2]] == ["preempted", "preempted"]
    assert_equal(reference, training, retaken=attempts[2]["steps_lost"])
