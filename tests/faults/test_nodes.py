"""A node dies or loses its cable: seen by us long before Slurm, blamed, and left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import cut_cable, kill_node
from tests.faults.running import Training, submit

pytestmark = pytest.mark.slurm


@pytest.fixture
def four_nodes(make_cluster: Callable[..., Cluster]) -> Cluster:
    """Three nodes are needed and one is to spare; SlurmdTimeout is Slurm's default of 300 s."""
    return make_cluster(nodes="node[1-4]")


def forget(cluster: Cluster, node: str) -> None:
    """At the test's end: Slurm need not wait for what was running there when it died."""
    cluster.on_reset(
        lambda: cluster.scontrol("update", f"NodeName={node}", "State=DOWN", "Reason=died")
    )


def goes_on_without(training: Training, node: str) -> None:
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert first["outcome"] == "node_failure"
    assert f"{node} no longer answers" in first["reason"]
    assert first["blamed"] == first["excluded"] == [node]
    assert first["decision"] == "resubmit"
    assert second["first_step"] == first["saved_step"] > 0
    assert node not in second["nodes"]
    assert len(second["nodes"]) == 3


@pytest.mark.parametrize("silently", [pytest.param(False, marks=pytest.mark.soak), True])
def test_a_dead_node_is_replaced_before_slurm_misses_it(
    silently: bool, four_nodes: Cluster, tmp_path: Path
) -> None:
    training = submit(four_nodes, tmp_path, "checkpoint.every_n_steps=10")
    training.wait_step(new=15)
    training.wait_saved(10)
    kill_node(four_nodes, "node3", silently=silently)
    forget(four_nodes, "node3")
    training.wait_attempt_end(timeout_s=150)
    training.wait_no_ranks()
    goes_on_without(training, "node3")
    assert training.diagnosed() == ("node_failed", None, "node3")


def test_a_cable_cut_in_an_all_reduce_is_seen_and_its_node_left_out(
    four_nodes: Cluster, tmp_path: Path
) -> None:
    training = submit(four_nodes, tmp_path, "checkpoint.every_n_steps=10")
    training.wait_step(new=15)
    training.wait_saved(10)
    cut_cable(four_nodes, "node2", end="switch")
    forget(four_nodes, "node2")
    training.wait_attempt_end(timeout_s=150)
    training.wait_no_ranks()
    goes_on_without(training, "node2")


def test_the_death_of_the_batch_node_is_survived_and_told(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(nodes="node[1-4]", slurmd_timeout_s=5)
    training = submit(cluster, tmp_path, "checkpoint.every_n_steps=10")
    training.wait_step(new=15)
    training.wait_saved(10)
    batch = training.records()[0].host
    kill_node(cluster, batch)
    forget(cluster, batch)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert first["outcome"] == "node_failure"
    assert second["first_step"] == first["saved_step"] > 0
    assert batch not in second["nodes"]
