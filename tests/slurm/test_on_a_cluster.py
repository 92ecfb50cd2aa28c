"""What is asked of Slurm and changed there, on a real one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.errors import SlurmError
from hpc_train.slurm.control import end_steps, exclude_nodes, requeue, sbatch
from hpc_train.slurm.dependencies import check_dependency
from hpc_train.slurm.jobs import job_details, steps_of
from hpc_train.slurm.nodes import usable_nodes
from hpc_train.slurm.partitions import check_partition
from tests.cluster import Cluster
from tests.cluster.faults import drain
from tests.cluster.shell import wait_until
from tests.e2e.conftest import Shell

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


@pytest.mark.parametrize(
    ("options", "message", "fix"),
    [
        ({"ntasks-per-node": "2", "cpus-per-task": "5"}, "for 2 ranks a node 10 CPUs", "_gpu=4"),
        ({"ntasks-per-node": "9"}, "gpus_per_node is 9, and each rank needs a CPU", "--gpus 8"),
        (
            {"gres": "gpu:5"},
            "gpus_per_node is 5, and no node .* .train gpu:4.",
            "--gpus 4 or fewer",
        ),
        ({"gres": "gpu:12", "ntasks-per-node": "12"}, "no node .* .train gpu:4.", "--gpus 4 or"),
        ({"gres": "gpu:h100:1"}, "gpu_type is h100, and no node", "slurm.gpu_type=null"),
        ({"nodes": "4"}, "is 4, more than the partition gives a job .train 3.", "--nodes 3"),
        ({"nodelist": "node9"}, "names node9, and the partition has no such node", "correct it"),
        ({"exclude": "node[1-2]", "nodes": "2"}, "leaves 1 of the partition's 3 nodes", "fewer"),
        ({"exclude": "node[1-2]", "nodelist": "node3"}, "", ""),
        ({"ntasks-per-node": "9", "overcommit": None}, "", ""),
        ({"ntasks-per-node": "2", "cpus-per-task": "4", "gres": "gpu:4"}, "", ""),
        ({"partition": "nowhere", "ntasks-per-node": "99"}, "", ""),
    ],
)
def test_what_no_node_of_the_partition_has_is_refused_before_it_waits_for_ever(
    options: dict[str, str | None], message: str, fix: str
) -> None:
    if not message:
        check_partition(options)
        return
    with pytest.raises(SlurmError, match=message) as caught:
        check_partition(options)
    assert fix in caught.value.hint


def test_a_job_that_there_is_not_or_that_failed_is_not_waited_for(slurm_cluster: Cluster) -> None:
    waits = slurm_cluster.sbatch(["--hold"], "#!/bin/sh\ntrue\n")
    fails = slurm_cluster.sbatch([], "#!/bin/sh\nfalse\n")
    works = slurm_cluster.sbatch([], "#!/bin/sh\ntrue\n")
    slurm_cluster.wait(fails, "FAILED")
    slurm_cluster.wait(works, "COMPLETED")
    check_dependency(f"afterok:{waits}:{works},afternotok:{fails}?afterany:{fails}+5")
    check_dependency("singleton")
    with pytest.raises(SlurmError, match="knows no job 99999"):
        check_dependency(f"afterok:{waits}:99999")
    with pytest.raises(SlurmError, match=f"job {fails} has ended as FAILED") as caught:
        check_dependency(f"afterok:{fails}")
    assert f"afterany:{fails}" in caught.value.hint


@pytest.mark.parametrize("command", ["doctor", "preflight"])
def test_what_salloc_would_refuse_is_told_with_a_fix(command: str, tmp_path: Path) -> None:
    said = Shell(tmp_path, dict(os.environ)).hpc(command, "--nodes=1", "--partition=no", code=4)
    assert "Slurm refused the job: invalid partition specified: no" in said.stderr
    assert "fix: --partition is no: there " in said.stderr
