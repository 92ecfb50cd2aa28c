"""Nodes whose clocks are minutes apart, which Slurm and munge still take."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import Training, ends_though_preempted, submit

pytestmark = pytest.mark.slurm
CLOCKS = Path(__file__).with_name("clocks")
# Of the first node, where the supervisor is; the second one's is as far off the other way.
BEHIND_AND_AHEAD = [-200, pytest.param(200, marks=pytest.mark.soak)]


def submit_there(cluster: Cluster, folder: Path, first_s: int, *words: str) -> Training:
    clocks = f"node1:{first_s},node2:{-first_s}"
    env = {"PYTHONPATH": str(CLOCKS), "FAULTS_CLOCKS": clocks}
    return submit(cluster, folder, *words, env=env)


@pytest.mark.parametrize("first_s", BEHIND_AND_AHEAD)
def test_a_run_is_preempted_and_completed(
    first_s: int, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    words = ("trainer.max_steps=150", "model.init_args.step_s=0.3", "checkpoint.every_n_steps=20")
    training = submit_there(slurm_cluster, tmp_path, first_s, *words)
    training.wait_step()
    assert training.status()["state"] == "running", training.story()
    ends_though_preempted(slurm_cluster, training, ["node3"])
    assert training.status()["step"] == 150


@pytest.mark.soak
@pytest.mark.parametrize("first_s", [-200, 200])
@pytest.mark.parametrize(
    ("fault", "outcome"), [(signal.SIGKILL, "node_failure"), (signal.SIGSTOP, "hang")]
)
def test_the_rank_that_is_killed_or_hangs_is_named(
    fault: signal.Signals, outcome: str, first_s: int, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    words = ("watchdog.floor_s=6", "checkpoint.every_n_steps=20")
    training = submit_there(slurm_cluster, tmp_path, first_s, *words)
    training.wait_step(new=25)
    training.wait_saved(20)
    (victim,) = training.pids("node2")
    os.kill(victim, fault)
    training.wait_attempt_end()
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["rank"], first["node"]) == (outcome, 1, "node2")
    assert second["first_step"] == first["saved_step"] >= 20
