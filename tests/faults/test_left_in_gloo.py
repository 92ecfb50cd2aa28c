"""A rank that gloo does not tell of its peer's death is ended, and the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import submit
from tests.training.test_script_fits import SCRIPTS

pytestmark = pytest.mark.slurm


def test_a_rank_left_in_a_collective_by_gloo_is_ended_and_the_run_goes_on(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(
        slurm_cluster,
        tmp_path,
        *("slurm.partition=train", "slurm.nodes=2", "script.accelerator=cpu"),
        *("script.may_take_no_steps=true", "watchdog.enabled=false", "preflight.mode=off"),
        *("--", str(tmp_path)),
        config=SCRIPTS / "left_in_gloo.py",
    )
    assert training.wait_end() == "completed", training.story()
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["rank"]) == ("node_failure", 1), training.story()
    assert "rank 1 on node2 was killed by SIGKILL" in first["reason"]
    assert second["outcome"] == "completed"
