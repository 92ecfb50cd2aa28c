"""Rendered scripts as people hand them to sbatch: held, as an array, for two minutes, elsewhere."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from hpc_train.runs.events import read_events
from tests.cluster import Cluster
from tests.faults.running import CONFIG, ROOT, Training, hpc_train, until

pytestmark = pytest.mark.slurm


@pytest.fixture
def script(slurm_cluster: Cluster, tmp_path: Path) -> Path:
    """The tiny training on one node, for ten minutes, rendered."""
    words = ["render", str(CONFIG), "slurm.nodes=1", "--time", "0:10:00", "-o", "job.sbatch"]
    said = hpc_train(slurm_cluster, *words, env=_own(tmp_path), cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    return tmp_path / "job.sbatch"


def _own(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state")}


def sbatch(cluster: Cluster, script: Path, *options: str) -> str:
    """The job of `sbatch OPTIONS script`, in the script's folder."""
    argv = ["sbatch", "--parsable", f"--chdir={script.parent}", *options, str(script)]
    return cluster.command(["env", f"PYTHONPATH={ROOT}", *argv]).stdout.strip()


def said(cluster: Cluster, folder: Path, *words: str) -> str:
    done = hpc_train(cluster, *words, env=_own(folder), cwd=folder)
    return re.sub(r"\s+", " ", done.stdout + done.stderr)


def run_of(cluster: Cluster, folder: Path, task: int) -> Training:
    """That of the task, once there is one."""

    def find() -> Path | None:
        for plan in folder.glob("runs/tiny/*/plan.json"):
            events = read_events(plan.parent / "events.jsonl")  # none yet, a moment behind the plan
            if any(str(it.get("job_id", "")).endswith(f"_{task}") for it in events):
                return plan.parent
        return None

    return Training.at(cluster, until(find, f"the run of task {task}", 120))


def test_a_job_that_is_held_is_told_as_a_rendered_script_that_waits(
    slurm_cluster: Cluster, tmp_path: Path, script: Path
) -> None:
    job = sbatch(slurm_cluster, script, "--hold")
    told = said(slurm_cluster, tmp_path, "status", job)
    assert f"{job} is job.sbatch, rendered by hpc-train, and waits: JobHeldUser: somebody" in told
    assert f"`scontrol release {job}` lets it go; scancel {job} ends it" in told
    slurm_cluster.cancel(job)


def test_a_node_without_the_python_of_the_script_says_so(
    slurm_cluster: Cluster, tmp_path: Path, script: Path
) -> None:
    script.write_text(script.read_text().replace(sys.executable, f"{tmp_path}/gone/bin/python"))
    job = sbatch(slurm_cluster, script)
    until(lambda: slurm_cluster.state(job) == "FAILED", "the job to fail", 60)
    words = (tmp_path / f"slurm-{job}.log").read_text()
    what = f"does not see the Python of this job, {tmp_path}/gone/bin/python\n  fix: submit from an"
    assert re.match(rf"hpc-train: error: node\d {re.escape(what)}", words), words
    assert not os.path.lexists(tmp_path / "runs")


def test_tasks_of_an_array_that_train_the_same_say_so_and_are_found_by_their_numbers(
    slurm_cluster: Cluster, tmp_path: Path, script: Path
) -> None:
    array = sbatch(slurm_cluster, script, "--array=0-1")
    for task in (0, 1):
        training = run_of(slurm_cluster, tmp_path, task)
        training.wait_step()
        told = said(slurm_cluster, tmp_path, "status", f"{array}_{task}")
        assert training.run.run_id in told
        assert f"note task {task} of array {array}: each of its 2 tasks trains the same" in told
    slurm_cluster.cancel(array)


def test_a_limit_that_is_shorter_than_the_lead_of_the_signal_is_told(
    slurm_cluster: Cluster, tmp_path: Path, script: Path
) -> None:
    sbatch(slurm_cluster, script, "--time=1", "--no-requeue", "--array=0-0")
    training = run_of(slurm_cluster, tmp_path, 0)
    first = training.wait_attempt_end(0)
    what = "the job's limit, 0:01:00, is no longer than the lead of its script's signal, 120 s"
    assert first.reason.startswith(what), training.story()
    told = said(slurm_cluster, tmp_path, "diagnose", str(training.run.path), "--attempt", "0")
    assert "sbatch --time=0:01:00 --signal=USR2@15 FILE" in told
    slurm_cluster.cancel(training.status()["job_id"])
