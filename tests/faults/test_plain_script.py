"""Scripts without a Trainer on the real Slurm: preempted under srun, killed under torchrun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cluster import Cluster
from tests.faults.running import Training, submit, until
from tests.training.test_script_fits import SCRIPTS

pytestmark = pytest.mark.slurm
STEPS = 60


def start(
    cluster: Cluster, folder: Path, name: str, *overrides: str, script: str = "plain_ddp"
) -> Training:
    out = folder / name
    args = ", args: [--resume, '{newest}']" if script == "plain_ddp" else ""
    resume = f"script.resume={{when: '{out}/ckpt.pt'{args}}}"
    return submit(
        cluster,
        folder,
        *("slurm.partition=train", "script.accelerator=cpu", resume, *overrides),
        *("preflight.mode=off", "preflight.monitor_interval_s=0"),
        *("--", "--steps", str(STEPS), "--slow", "0.4", "--out", str(out)),
        config=SCRIPTS / f"{script}.py",
    )


def ended(training: Training, out: Path) -> list[dict[str, Any]]:
    assert training.wait_end() == "completed", training.story()
    assert torch.load(out / "final.pt")["step"] == STEPS
    return list(training.status()["attempts"])


def preempted(cluster: Cluster, training: Training) -> None:
    training.wait_step()
    urgent = cluster.preempt(training.records()[0].nodes)
    until(lambda: cluster.state(urgent) == "RUNNING", "the urgent job to start", 120)
    cluster.cancel(urgent)


def test_a_ddp_script_is_preempted_saves_by_its_own_handler_and_goes_on_by_its_own_argument(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = start(slurm_cluster, tmp_path, "srun", "slurm.nodes=3")
    preempted(slurm_cluster, training)
    first, second = ended(training, tmp_path / "srun")
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0), training.story()
    assert second["first_step"] == first["saved_step"] >= 3
    assert second["last_step"] == STEPS
    ends = {beat.step for beat in training.beats(0)}
    assert ends == {first["saved_step"]}, "all ranks stopped at one step"


def test_a_rank_under_torchrun_is_killed_and_the_steps_since_the_scripts_checkpoint_are_lost(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    words = ("script.launcher=torchrun", "slurm.nodes=2", "slurm.gpus_per_node=2")
    training = start(slurm_cluster, tmp_path, "torchrun", *words)
    training.wait_step(new=9)
    beat = training.beats(0)[-1]
    assert (beat.rank, beat.node) == (3, training.records()[0].nodes[1])
    slurm_cluster.node_exec(beat.node, ["kill", "-KILL", str(beat.pid)])
    first, second = ended(training, tmp_path / "torchrun")
    assert (first["outcome"], first["rank"]) == ("node_failure", 3), training.story()
    assert "rank 3" in first["reason"]
    assert "killed by SIGKILL" in first["reason"]
    assert first["saved_step"] == first["last_step"] - first["steps_lost"] >= 5
    assert second["first_step"] == first["saved_step"]


def test_a_script_that_starts_its_own_ranks_is_preempted_on_two_nodes_and_goes_on(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    words = ("script.launcher=none", "slurm.nodes=2", "slurm.gpus_per_node=2")
    training = start(slurm_cluster, tmp_path, "none", *words, script="spawned")
    preempted(slurm_cluster, training)
    assert training.wait_end() == "completed", training.story()
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0), training.story()
    assert {(beat.rank, beat.step) for beat in training.beats(0)} == {
        (rank, first["saved_step"]) for rank in range(4)
    }
    assert {beat.node for beat in training.beats(0)} == set(training.records()[0].nodes)
    assert (second["first_step"], second["last_step"]) == (first["saved_step"], STEPS)
