"""A file system whose clients may say for a minute that there is no new file, as NFS does."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import late_names, slow_cable
from tests.faults.running import ends_though_preempted, submit
from tests.preflight_on_slurm.lab import PATIENT, PATIENT_CONFIG

SCRIPTS = Path(__file__).parents[1] / "scripts"
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        not (shutil.which("bindfs") and Path("/dev/fuse").exists()), reason="needs bindfs and FUSE"
    ),
]
CHECKED = ("preflight.mode=quick", *PATIENT_CONFIG)


def test_a_preflight_typed_on_a_client_sees_the_verdict_of_the_nodes(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    late_names(slurm_cluster, tmp_path)
    command = [sys.executable, "-m", "hpc_train.cli", "preflight", "--nodes", "2", "--json"]
    there = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path), *command, *PATIENT]
    done = slurm_cluster.node_exec("node3", there, check=False, timeout_s=200)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["verdict"] == "go"


def test_a_run_is_checked_preempted_and_goes_on(slurm_cluster: Cluster, tmp_path: Path) -> None:
    late_names(slurm_cluster, tmp_path)
    longer = ("trainer.max_steps=120", "model.init_args.step_s=0.4")
    words = (*CHECKED, *longer, "checkpoint.every_n_steps=20")
    training = submit(slurm_cluster, tmp_path, *words)
    training.wait_step()
    ends_though_preempted(slurm_cluster, training, ["node2"])


def test_a_script_whose_ranks_are_all_on_other_nodes_than_the_supervisor_is_completed(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """Only what its ranks left tells that it has trained."""
    late_names(slurm_cluster, tmp_path)
    slow_cable(slurm_cluster, "node1", 10)
    shape = ("slurm.partition=train", "slurm.nodes=2", "slurm.spares=1", "script.accelerator=cpu")
    out = ("--", "--steps", "10", "--out", str(tmp_path / "out"))
    words = (*shape, *CHECKED, "preflight.monitor_interval_s=0", *out)
    training = submit(slurm_cluster, tmp_path, *words, config=SCRIPTS / "plain_ddp.py")
    assert training.wait_end(300) == "completed", training.story()
    # A check that a busy machine failed is repeated in another attempt.
    last = training.status()["attempts"][-1]
    assert (last["host"], last["nodes"]) == ("node1", ["node2", "node3"]), training.story()
