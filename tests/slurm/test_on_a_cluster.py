"""What is asked of Slurm and changed there, on a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import SlurmError
from hpc_train.slurm.control import end_steps, exclude_nodes, requeue, sbatch
from hpc_train.slurm.jobs import job_details, steps_of
from hpc_train.slurm.nodes import usable_nodes
from tests.cluster import Cluster
from tests.cluster.faults import drain
from tests.cluster.shell import wait_until

pytestmark = pytest.mark.slurm


@pytest.fixture(autouse=True)
def _this_cluster(slurm_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in slurm_cluster.env().items():
        monkeypatch.setenv(name, value)


def test_drained_nodes_are_not_usable_and_busy_ones_are(slurm_cluster: Cluster) -> None:
    job = slurm_cluster.sbatch(["--nodelist=node1"], "#!/bin/sh\nsleep 60\n")
    slurm_cluster.wait(job, "RUNNING")
    drain(slurm_cluster, "node3")
    assert usable_nodes("train") == {"node1", "node2"}
    assert usable_nodes("nowhere") == frozenset()


def test_a_job_that_a_job_submits_inherits_nothing_of_its_place(
    slurm_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_RESTART_COUNT", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "7")
    monkeypatch.setenv("A_USERS_OWN", "kept")
    script = tmp_path / "job.sbatch"
    script.write_text(f"#!/bin/sh\n#SBATCH --output={tmp_path}/out\nenv -0\n")
    job = sbatch(script, ["--partition=train"], known=())
    slurm_cluster.wait(job, "COMPLETED")
    seen = dict(line.split("=", 1) for line in (tmp_path / "out").read_text().split("\0")[:-1])
    assert seen["A_USERS_OWN"] == "kept"
    assert seen["SLURM_JOB_ID"] == job
    assert "SLURM_ARRAY_TASK_ID" not in seen
    assert seen.get("SLURM_RESTART_COUNT", "0") == "0"


def test_steps_are_listed_while_they_run_and_can_be_ended(slurm_cluster: Cluster) -> None:
    job = slurm_cluster.sbatch([], "#!/bin/sh\nsrun sleep 60\nsleep 60\n")
    slurm_cluster.wait(job, "RUNNING")
    wait_until(lambda: steps_of(job) == [f"{job}.0"], "the step", timeout_s=60)

    def gone() -> bool:
        steps = steps_of(job)
        end_steps(steps or [f"{job}.0"])
        return not steps

    wait_until(gone, "no step", timeout_s=60)
    assert job_details(job).is_alive


def test_nodes_are_left_out_after_a_requeue_and_not_while_the_job_runs(
    slurm_cluster: Cluster,
) -> None:
    job = slurm_cluster.sbatch([], "#!/bin/sh\nsleep 60\n")
    slurm_cluster.wait(job, "RUNNING")
    where = slurm_cluster.job(job)["NodeList"]
    with pytest.raises(SlurmError):
        exclude_nodes(job, where)
    requeue(job, 0)
    exclude_nodes(job, where)
    wait_until(lambda: slurm_cluster.job(job)["Restarts"] == "1", "the restart", timeout_s=60)
    slurm_cluster.wait(job, "RUNNING")
    assert slurm_cluster.job(job)["NodeList"] != where
