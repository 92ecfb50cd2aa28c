"""A script that nobody changed, on the real Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.cluster import Cluster
from tests.faults.running import ROOT, Training, ends_though_preempted, submit
from tests.training.test_script_fits import SCRIPTS, same

pytestmark = pytest.mark.slurm
WORDS = ("--seed", "1", "--epochs", "6")


def start(cluster: Cluster, folder: Path, out: Path, slow_s: float) -> Training:
    return submit(
        cluster,
        folder,
        *("slurm.nodes=3", "slurm.partition=train", "script.accelerator=cpu"),
        *("preflight.mode=off", "preflight.monitor_interval_s=0"),
        *("--", *WORDS, "--slow", str(slow_s), "--out", str(out)),
        config=SCRIPTS / "classic.py",
    )


def test_a_script_on_three_nodes_is_preempted_and_ends_with_the_weights_of_a_quiet_run(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    quiet = start(slurm_cluster, tmp_path, tmp_path / "quiet", 0)
    assert quiet.wait_end() == "completed", quiet.story()
    out = tmp_path / 'an out "folder" $(touch owned)'
    training = start(slurm_cluster, tmp_path, out, 1.0)
    training.wait_step()
    ends_though_preempted(slurm_cluster, training, training.records()[0].nodes)
    assert same(torch.load(out / "final.pt"), torch.load(tmp_path / "quiet" / "final.pt"))
    assert not (ROOT / "owned").exists()
