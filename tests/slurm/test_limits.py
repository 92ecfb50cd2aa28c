"""A site that enforces accounts, QOS and their limits (AccountingStorageEnforce, slurm.conf(5))."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.slurm.pending import explain_pending, explain_waiting
from hpc_train.slurm.refusals import refusal_error
from tests.cluster.cluster import Cluster
from tests.e2e.conftest import DIGITS
from tests.slurm.test_sites import hpc

ENFORCES = ("AccountingStorageEnforce=associations,qos,limits",)
LIMITS = ("maxwall=00:10:00", "maxsubmitjobsperuser=1", "maxtresperjob=node=2,gres/gpu=3")
QOS = "change slurm.qos: `sacctmgr show associations user=$USER format=account,qos` lists yours"
FAST = ("--account", "lab", "--qos", "fast", "--time", "0:05:00")
SHAPE = "change slurm.gpus_per_node or slurm.nodes (--gpus, --nodes): your QOS (slurm.qos) allows"


@pytest.mark.slurm
def test_each_limit_of_a_site_is_told_with_its_key_and_within_them_it_trains(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(nodes="node[1-3]", more=ENFORCES)
    for words in (
        ("add", "account", "lab", "description=lab"),
        ("add", "account", "other", "description=other"),
        ("add", "qos", "fast", "flags=DenyOnLimit", *LIMITS),
        ("add", "qos", "vip"),
        ("add", "user", "root", "account=lab", "qos=normal,fast", "defaultaccount=lab"),
    ):
        cluster.command(["sacctmgr", "-i", *words])

    def refusal(*words: str) -> str:
        done = hpc(cluster, tmp_path, "submit", str(DIGITS), "--nodes", "1", "--gpus", "1", *words)
        assert done.returncode == 4, done.stdout + done.stderr
        assert cluster.command(["squeue", "--noheader"]).stdout == "", "nothing was submitted"
        return done.stderr

    assert "change slurm.account (--account): `sacctmgr" in refusal("--account", "other")
    for qos in ("vip", "nope"):
        assert QOS in refusal("--account", "lab", "--qos", qos)
    assert "change slurm.time: it is longer than your QOS" in refusal(*FAST, "--time", "1:00:00")
    assert SHAPE in refusal(*FAST, "--gpus", "4")
    assert "change slurm.nodes (--nodes): your QOS" in refusal(*FAST, "--nodes", "3")

    small = ("submit", str(DIGITS), "--nodes", "2", "--gpus", "1", "trainer.max_epochs=1", *FAST)
    waiting = hpc(cluster, tmp_path, *small, "--json", "slurm.begin=now+1hour")
    assert waiting.returncode == 0, waiting.stderr
    second = hpc(cluster, tmp_path, *small)
    assert second.returncode == 4
    assert "you have as many jobs as your QOS (slurm.qos) allows" in second.stderr
    assert "`squeue --me` shows them; submit again when one has ended" in second.stderr
    job_id = json.loads(waiting.stdout)["job_id"]
    cluster.scontrol("update", f"JobId={job_id}", "StartTime=now")
    assert cluster.wait(job_id, "COMPLETED") == "COMPLETED"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("QOSMaxSubmitJobPerUserLimit", "you have as many jobs as your QOS"),
        ("AssocMaxSubmitJobLimit", "you have as many jobs as your account"),
        ("QOSMaxWallDurationPerJobLimit", "change slurm.time: it is longer than your QOS"),
        ("AssocMaxWallDurationPerJobLimit", "change slurm.time: it is longer than your account"),
        ("QOSMaxGRESPerUser", SHAPE),
        ("QOSMinGRES", SHAPE),
        ("QOSMaxNodePerUserLimit", "change slurm.nodes (--nodes): your QOS"),
        ("AssocGrpNodeLimit", "change slurm.nodes (--nodes): your account"),
        ("QOSMaxCpuPerJobLimit", "change slurm.cpus_per_gpu or the shape: your QOS"),
        (
            "QOSMaxMemoryPerJob",
            "change slurm.mem, slurm.mem_per_gpu or slurm.mem_per_cpu: your QOS",
        ),
        ("QOSMaxLicensesPerUser", "change slurm.qos, slurm.account or the shape"),
    ],
)
def test_a_limit_that_slurm_names_is_told_by_its_key(word: str, told: str) -> None:
    """squeue(1), JOB REASON CODES; sbatch prints the word in front of its refusal."""
    said = "Batch job submission failed: Job violates accounting/QOS policy (job submit limit)"
    error = refusal_error(f"sbatch: error: {word}\nsbatch: error: {said}\n")
    assert str(error).startswith(f"Slurm refused the job: {word}; Job violates")
    assert told in error.hint


@pytest.mark.parametrize("word", ["QOSMaxGRESPerUser", "AssocGrpNodeLimit"])
def test_a_job_that_waits_for_a_limit_may_alone_be_beyond_it(word: str) -> None:
    assert "which other jobs use up or this one alone is beyond: `sacctmgr" in explain_waiting(word)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:node[1-2]", "down or drained (node[1-2]): `sinfo -R`"),
        ("(ReqNodeNotAvail, UnavailableNodes:node3)", "down or drained (node3): `sinfo -R`"),
        ("ReqNodeNotAvail, UnavailableNodes:", "down or drained: `sinfo -R`"),
        ("ReqNodeNotAvail", "down or drained: `sinfo -R`"),
    ],
)
def test_the_nodes_that_slurm_names_as_not_there_are_told(reason: str, told: str) -> None:
    assert told in explain_pending(reason)
