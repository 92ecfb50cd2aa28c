"""Slurm suspends the job, as PreemptMode=SUSPEND,GANG does, and lets it go on later."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import unpause
from tests.faults.running import hpc_train, submit, until

pytestmark = pytest.mark.slurm

SUSPENDED_S = 30.0


def test_a_suspended_job_is_told_as_that_and_goes_on_in_the_same_attempt(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(
        slurm_cluster, tmp_path, "slurm.nodes=2", "watchdog.floor_s=20", "trainer.max_steps=400"
    )
    training.wait_step(new=10)
    slurm_cluster.command(["scontrol", "suspend", training.job_id])
    until(
        lambda: slurm_cluster.job(training.job_id)["JobState"] == "SUSPENDED",
        "the job to stop",
        120,
    )
    time.sleep(SUSPENDED_S)  # what is tested: longer than nothing may move
    said = hpc_train(slurm_cluster, "status", str(training.run.path)).stdout
    listed = hpc_train(slurm_cluster, "list", "--runs-dir", str(tmp_path / "runs")).stdout
    slurm_cluster.command(["scontrol", "resume", training.job_id])
    assert "Slurm has suspended the job" in listed
    assert ": Slurm has suspended the job" in said.splitlines()[0]
    assert training.wait_end() == "completed"
    (attempt,) = training.status()["attempts"]
    assert (attempt["outcome"], attempt["last_step"]) == ("completed", 400)


def test_ranks_that_wake_after_their_supervisor_do_not_hang(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """As over a file system that shows what they write some seconds later."""
    training = submit(
        slurm_cluster, tmp_path, "slurm.nodes=2", "watchdog.floor_s=20", "trainer.max_steps=400"
    )
    training.wait_step(new=10)
    ranks = [*training.pids("node1"), *training.pids("node2")]
    supervisor = training.records()[0].pid
    slurm_cluster.on_reset(lambda: unpause([supervisor, *ranks]))
    for pid in ranks:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2)  # and the newest that they have written has been seen
    os.kill(supervisor, signal.SIGSTOP)
    time.sleep(SUSPENDED_S)
    unpause([supervisor])
    time.sleep(3)  # the look of each second has been taken
    unpause(ranks)
    assert training.wait_end() == "completed"
    (attempt,) = training.status()["attempts"]
    assert (attempt["outcome"], attempt["last_step"]) == ("completed", 400)
