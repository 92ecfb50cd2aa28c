"""An administrator, or a health check, sets a node down while its daemon still runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import submit

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize(
    ("shape", "down"),
    [
        pytest.param(("slurm.nodes=1",), 0, id="the only one"),
        pytest.param(("slurm.nodes=2",), 1, id="the last of two"),
        pytest.param(("slurm.nodes=2",), 0, id="the first of two"),
    ],
)
def test_a_run_on_a_node_that_is_set_down_goes_on_elsewhere(
    shape: tuple[str, ...], down: int, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, *shape, "checkpoint.every_n_steps=10")
    training.wait_step(new=15)
    training.wait_saved(10)
    node = training.records()[0].nodes[down]
    update = ("update", f"NodeName={node}", "State=DOWN", "Reason=test")
    slurm_cluster.scontrol(*update)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert first["outcome"] == "node_failure"
    assert first["reason"].startswith(f"Slurm took {node} from the job (node failure")
    assert first["blamed"] == [node]
    # Ranks that Slurm has told to leave may save while the next attempt waits for its nodes.
    assert second["first_step"] >= first["saved_step"] > 0
    assert node not in second["nodes"]
    assert training.status()["state"] == "running"


@pytest.mark.parametrize("nodelist", ["node2", "node[2-3]"])
def test_a_node_that_the_nodelist_names_is_not_left_out_and_waited_for(
    nodelist: str, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """Slurm would answer BadConstraints to a job that both names a node and leaves it out."""
    nodes = f"slurm.nodes={1 if nodelist == 'node2' else 2}"
    words = (nodes, f"slurm.nodelist={nodelist}", "checkpoint.every_n_steps=10")
    training = submit(slurm_cluster, tmp_path, *words)
    training.wait_step(new=15)
    training.wait_saved(10)
    slurm_cluster.scontrol("update", "NodeName=node2", "State=DOWN", "Reason=test")
    training.wait_attempt_end()
    slurm_cluster.bring_back(["node2"])
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert "node2 cannot be left out, since slurm.nodelist names it" in first["decision_reason"]
    assert second["first_step"] >= first["saved_step"] > 0
    assert "node2" in second["nodes"]
