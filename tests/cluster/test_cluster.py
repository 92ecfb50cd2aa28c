from __future__ import annotations

import pytest

from tests.cluster import Cluster

pytestmark = pytest.mark.slurm


def test_three_idle_nodes_with_twelve_gpus_and_accounting(slurm_cluster: Cluster) -> None:
    assert slurm_cluster.node_states() == {"node1": "idle", "node2": "idle", "node3": "idle"}
    gpus = slurm_cluster.command(
        ["sinfo", "--Node", "--noheader", "-p", "train", "-o", "%G"]
    ).stdout
    assert gpus.split() == ["gpu:4"] * 3
    assert "testbed" in slurm_cluster.command(["sacctmgr", "-nP", "show", "cluster"]).stdout


def test_a_job_on_three_nodes_sees_three_hosts_and_four_gpus_each(slurm_cluster: Cluster) -> None:
    script = "#!/bin/sh\nsrun sh -c 'echo $(hostname) $CUDA_VISIBLE_DEVICES'\n"
    job = slurm_cluster.sbatch(["--nodes=3", "--gres=gpu:4"], script)
    slurm_cluster.wait(job, "COMPLETED")
    seen = sorted(slurm_cluster.output(job).splitlines())
    assert seen == [f"node{i} 0,1,2,3" for i in (1, 2, 3)]


def test_preemption_signals_the_steps_and_the_job_runs_again(slurm_cluster: Cluster) -> None:
    script = (
        "#!/bin/sh\n"
        "srun --nodes=3 --ntasks=3 bash -c '"
        'trap "echo $(hostname) term; exit 1" TERM; echo up; sleep 60 & wait\'\n'
        "scontrol requeue $SLURM_JOB_ID; sleep 30\n"
    )
    job = slurm_cluster.sbatch(["--nodes=3", "--exclusive", "--open-mode=append"], script)
    slurm_cluster.wait(job, "RUNNING")
    urgent = slurm_cluster.preempt()
    slurm_cluster.wait(urgent, "RUNNING")
    slurm_cluster.cancel(urgent)
    slurm_cluster.wait(job, "RUNNING", 30)
    assert slurm_cluster.job(job)["Restarts"] == "1"
    assert sum("term" in line for line in slurm_cluster.output(job).splitlines()) == 3
