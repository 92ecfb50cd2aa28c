"""Preempted: nothing is lost, whatever grace and mode the site has."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import change_partition
from tests.faults.running import Training, submit, until

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


def test_a_preemption_in_the_first_second_costs_nothing_but_the_wait(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=1", "slurm.nodelist=node1")
    until(lambda: training.records(), "the attempt to begin", 30)
    urgent = slurm_cluster.preempt(["node1"])
    until(lambda: slurm_cluster.state(urgent) == "RUNNING", "the urgent job to start", 40)
    slurm_cluster.cancel(urgent)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0)
    assert "nothing new was saved" in first["reason"]
    assert second["first_step"] == 0


def preempt(training: Training, number: int) -> None:
    """Preempt attempt `number` and give the node back."""
    cluster = training.cluster
    urgent = cluster.preempt(["node1"])
    training.wait_attempt_end(number)
    until(lambda: cluster.state(urgent) == "RUNNING", "the urgent job to start", 40)
    cluster.cancel(urgent)


def test_a_run_that_is_preempted_again_and_again_goes_on_while_it_progresses(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=1", "slurm.nodelist=node1")
    for number in range(3):
        training.wait_step(number, new=1)
        preempt(training, number)
    training.wait_step(3, new=1)
    attempts = training.status()["attempts"]
    assert [a["outcome"] for a in attempts] == ["preempted"] * 3 + [None]
    assert [a["steps_lost"] for a in attempts] == [0] * 4
    ends, begins = [a["last_step"] for a in attempts[:3]], [a["first_step"] for a in attempts[1:]]
    assert begins == ends == sorted(set(ends))


def test_two_preemptions_without_a_step_stop_the_run_and_say_why(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(
        slurm_cluster,
        tmp_path,
        "slurm.nodes=1",
        "slurm.nodelist=node1",
        "model.init_args.step_s=300",
        "watchdog.step_timeout_s=600",
    )
    for number in range(2):
        until(lambda n=number: len(training.records()) > n, "the attempt to begin", 40)
        preempt(training, number)
    assert training.wait_end() == "failed"
    status = training.status()
    assert len(status["attempts"]) == 2
    assert "2 attempts in a row ended without one new step that was saved" in status["reason"]
