"""Two clusters that know of each other: by SLURM_CLUSTERS, or as a federation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import pause
from tests.faults.running import RANK, hpc_train, submit

pytestmark = pytest.mark.slurm
BETA = {"SLURM_CLUSTERS": "beta"}
ONE_NODE = "slurm.nodes=1"


@pytest.fixture
def siblings(make_cluster: Callable[..., Cluster]) -> tuple[Cluster, Cluster]:
    """Two clusters with one slurmdbd, alpha's."""
    alpha = make_cluster(nodes="a[1-2]", cluster_name="alpha", kill_wait_s=5)
    shown = ("FederationParameters=fed_display",)
    number = alpha.layout.index
    beta = make_cluster(nodes="b[1-3]", cluster_name="beta", sibling_of=number, more=shown)
    for cluster in (alpha, beta):
        route = ["route", "replace", "10.77.0.0/16", "via", cluster.layout.controller_address]
        for node in cluster.nodes:  # to the other one's controller
            cluster.node_exec(node, ["ip", *route])
    return alpha, beta


@pytest.fixture
def federation(siblings: tuple[Cluster, Cluster]) -> Iterator[tuple[Cluster, Cluster]]:
    alpha, beta = siblings
    alpha.command(["sacctmgr", "-i", "add", "federation", "both", "cluster=alpha,beta"])
    yield siblings
    alpha.reset()
    beta.reset()
    alpha.command(["sacctmgr", "-i", "delete", "federation", "both"])


def jobs(cluster: Cluster) -> list[str]:
    return cluster.command(["squeue", "--noheader", "--format=%A"]).stdout.split()


def test_another_clusters_run_is_not_taken_for_the_job_of_the_same_id_here(
    siblings: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    alpha, beta = siblings
    training = submit(alpha, tmp_path, ONE_NODE, "slurm.begin=now+1hour", env=BETA)
    same = ""
    while same != training.job_id:
        same = alpha.sbatch(["--hold"], "#!/bin/sh\n")
    run = str(training.run.path)
    assert "SLURM_CLUSTERS was beta" in training.status()["reason"]
    refused = hpc_train(alpha, "cancel", run)
    assert refused.returncode == 4, refused
    assert "SLURM_CLUSTERS was beta" in refused.stderr
    assert same in jobs(alpha)
    assert jobs(beta) == [training.job_id]
    assert hpc_train(alpha, "cancel", run, env=BETA).returncode == 0
    assert same in jobs(alpha)
    assert jobs(beta) == []


@pytest.mark.parametrize("name", ["SBATCH_CLUSTERS=beta", "SLURM_CLUSTERS=alpha,beta"])
def test_a_job_that_would_be_looked_for_in_the_wrong_cluster_is_not_submitted(
    siblings: tuple[Cluster, Cluster], tmp_path: Path, name: str
) -> None:
    alpha, beta = siblings
    variable, _, value = name.partition("=")
    words = ("submit", "tests/faults/tiny.yaml", ONE_NODE, f"runs_dir={tmp_path}")
    done = hpc_train(alpha, *words, env={variable: value})
    assert done.returncode == 4, done
    assert name in done.stderr
    assert jobs(alpha) + jobs(beta) == []


def test_a_run_goes_on_in_another_cluster_of_its_federation(
    federation: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    alpha, beta = federation
    busy = alpha.preempt()
    alpha.wait(busy, "RUNNING")
    training = submit(alpha, tmp_path, ONE_NODE)
    training.wait_step()
    assert training.status()["state"] == "running"
    alpha.cancel(busy)
    beta.preempt()
    training.wait_step(1)
    status = training.status()
    assert status["state"] == "running"
    assert [it["nodes"] for it in status["attempts"]] == [["b1"], ["a1"]]
    assert status["attempts"][0]["outcome"] == "preempted"
    assert status["attempts"][1]["first_step"] == status["attempts"][0]["last_step"]
    assert status["job_id"] == training.job_id
    assert hpc_train(beta, "cancel", str(training.run.path)).returncode == 0
    assert training.wait_end() == "cancelled"


def test_a_node_that_hangs_is_left_out_though_the_other_cluster_has_none_of_its_name(
    federation: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    alpha, beta = federation
    alpha.wait(alpha.preempt(), "RUNNING")
    training = submit(alpha, tmp_path, "slurm.nodes=2")
    training.wait_step()
    pause(beta, "b2", RANK)
    training.wait_step(1)
    assert [record.nodes for record in training.records()] == [("b1", "b2"), ("b1", "b3")]
