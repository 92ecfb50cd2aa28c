"""Preempted: nothing is lost, whatever grace and mode the site has."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hpc_train.plan import env_names
from tests.cluster import Cluster
from tests.cluster.faults import change_partition
from tests.faults.running import Training, report_adds_up, submit, until

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize(
    ("nodes", "grace_s", "mode"),
    [(3, 300, "REQUEUE"), (1, 5, "CANCEL"), (1, 0, "REQUEUE"), (2, 0, "CANCEL")],
)
def test_a_preempted_run_goes_on_at_the_step_where_it_was(
    nodes: int, grace_s: int, mode: str, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    change_partition(slurm_cluster, GraceTime=grace_s, PreemptMode=mode)
    training = submit(slurm_cluster, tmp_path, f"slurm.nodes={nodes}")
    training.wait_step()
    urgent = slurm_cluster.preempt(training.records()[0].nodes)
    told = time.monotonic()
    until(lambda: slurm_cluster.state(urgent) == "RUNNING", "the urgent job to start", 200)
    released_s = time.monotonic() - told
    slurm_cluster.cancel(urgent)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0), training.story()
    assert second["first_step"] == first["last_step"] == first["saved_step"] >= 3
    # Also under CANCEL the batch step may requeue its job before that is gone.
    assert (first["decision"], second["job_id"]) == ("requeue", first["job_id"])
    assert first["reason"].endswith(f"saved at step {first['saved_step']}")
    assert released_s < 180 or grace_s < 180, "it has not waited for the end of the grace"
    report_adds_up(training, ["preempted", None])
    assert training.diagnosed() == ("preempted", None, None)


def test_a_preemption_in_the_first_second_costs_nothing_but_the_wait(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=1", "slurm.nodelist=node1")
    until(lambda: training.records(), "the attempt to begin", 120)
    urgent = slurm_cluster.preempt(["node1"])
    until(lambda: slurm_cluster.state(urgent) == "RUNNING", "the urgent job to start", 120)
    slurm_cluster.cancel(urgent)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0)
    # Slurm looks for jobs to preempt now and then: the ranks may have begun when it does.
    assert ("nothing new was saved" in first["reason"]) == (first["last_step"] == 0)
    assert second["first_step"] == first["last_step"]


def preempt(training: Training, number: int) -> None:
    """Preempt attempt `number` and give the node back."""
    cluster = training.cluster
    urgent = cluster.preempt(["node1"])
    training.wait_attempt_end(number)
    until(lambda: cluster.state(urgent) == "RUNNING", "the urgent job to start", 120)
    cluster.cancel(urgent)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("times", [3, 30])
def test_a_run_that_is_preempted_again_and_again_goes_on_while_it_progresses(
    times: int, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=1", "slurm.nodelist=node1")
    for number in range(times):
        training.wait_step(number, new=1)
        preempt(training, number)
    training.wait_step(times, new=1)
    attempts = training.status()["attempts"]
    assert [a["outcome"] for a in attempts] == ["preempted"] * times + [None]
    assert [a["steps_lost"] for a in attempts] == [0] * (times + 1)
    ends = [a["last_step"] for a in attempts[:times]]
    begins = [a["first_step"] for a in attempts[1:]]
    assert begins == ends == sorted(set(ends))


def test_two_stops_from_outside_without_a_step_end_the_run_and_say_why(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    # Each attempt is told to stop before its first step.
    training = submit(
        slurm_cluster, tmp_path, "slurm.nodes=1", env={env_names.FAULTS: "stop@start"}
    )
    assert training.wait_end() == "failed"
    status = training.status()
    assert [attempt["decision"] for attempt in status["attempts"]] == ["requeue", "stop"]
    assert [attempt["outcome"] for attempt in status["attempts"]] == ["preempted"] * 2
    assert "2 attempts in a row ended without one new step that was saved" in status["reason"]
