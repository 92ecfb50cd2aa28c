"""A checkpoint breaks on the disk: it is passed over, told, and does not end the run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hpc_train.runs.checkpoints import checkpoint_steps
from tests.cluster import Cluster
from tests.faults.nights import flip_a_byte
from tests.faults.running import Training, hpc_train, submit

pytestmark = pytest.mark.slurm


def stop(training: Training, attempt: int) -> None:
    """Have one rank told to stop, as a preemption does, and wait for what follows."""
    node = training.records()[attempt].nodes[0]
    os.kill(training.pids(node)[0], signal.SIGTERM)
    training.wait_attempt_end(attempt)


def damage(training: Training, *steps: int) -> None:
    """Change a byte in each of these checkpoints, while no attempt runs."""
    attempts = len(training.records())
    for step in steps:
        flip_a_byte(training, step)
    assert len(training.records()) == attempts, "the next attempt began too early for this test"


def test_the_only_checkpoint_is_damaged_and_the_run_begins_anew_and_moves_on(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=2")
    training.wait_step(new=200)
    stop(training, 0)
    (saved,) = checkpoint_steps(training.run)
    damage(training, saved)
    training.wait_step(1, new=3)
    stop(training, 1)  # further back than the first attempt had come, and progress all the same
    training.wait_step(2, new=1)

    first, second, third = training.status()["attempts"]
    assert (first["last_step"], first["steps_lost"]) == (saved, saved)
    assert second["first_step"] == 0
    assert [item["step"] for item in second["damaged"]] == [saved]
    assert 3 <= second["saved_step"] == second["last_step"] < saved
    assert (second["decision"], second["steps_lost"]) == ("requeue", 0)
    assert third["first_step"] == second["saved_step"]
    history = hpc_train(slurm_cluster, "status", str(training.run.path)).stdout
    assert f"step {saved} is damaged (" in history
    assert "): goes on from 0\n" in history
    assert f"steps    0 to {second['last_step']}, 0 lost" in history
    assert "begin anew" in training.run.attempt(1).supervisor_log.read_text()


def test_the_newest_two_are_damaged_and_the_run_goes_on_from_the_third(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=1", "checkpoint.every_n_steps=10")
    training.wait_step(new=32)
    training.wait_saved(30)
    stop(training, 0)
    good, *newer = list(checkpoint_steps(training.run))[-3:]
    damage(training, *newer)
    training.wait_step(1, new=1)
    first, second = training.status()["attempts"]
    assert second["first_step"] == good
    assert [item["step"] for item in second["damaged"]] == newer[::-1]
    assert first["steps_lost"] == first["last_step"] - good > 0
