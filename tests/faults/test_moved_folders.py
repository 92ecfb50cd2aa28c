"""The run's folder is renamed or removed by its user while the run trains."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cluster import Cluster
from tests.faults.running import Training, hpc_train, submit, until

pytestmark = pytest.mark.slurm

ONE = ("slurm.nodes=1", "trainer.max_steps=400")


def gone(training: Training) -> bool:
    """Whether Slurm has ended the job."""
    queue = training.cluster.command(["squeue", "--noheader", "--format=%i"]).stdout
    return training.job_id not in queue.split()


def test_a_folder_that_is_moved_ends_its_attempt_and_resume_goes_on_at_once(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, *ONE, "checkpoint.every_n_steps=10")
    training.wait_step(new=25)
    training.wait_saved(20)
    old = training.run.path.parent
    place = old.rename(old.with_name("moved-old")) / training.run.run_id
    until(lambda: gone(training), "the job's end", 60)
    assert not old.exists(), "nothing is made anew where it was"
    moved = Training(slurm_cluster, RunDir(place), training.job_id)
    status = moved.status()
    (first,) = status["attempts"]
    said = f"its folder was moved while it ran, from {training.run.path} to {place}"
    assert status["reason"].startswith(f"{said}; step {first['saved_step']} is saved")
    assert (status["state"], first["outcome"]) == ("failed", "user_error")
    assert first["decision"] == "stop"
    shown = hpc_train(slurm_cluster, "status", str(place)).stdout
    assert "stop: its job cannot go on where the folder was; hpc-train resume can" in shown
    assert first["saved_step"] >= 20
    log = moved.run.job_log(training.job_id).read_text()
    assert f"was moved to {place} while it ran: its ranks are ended" in log
    assert f"fix: hpc-train resume {place}" in log
    assert "Traceback" not in log
    done = hpc_train(slurm_cluster, "resume", str(place))
    assert done.returncode == 0, done.stderr
    assert moved.wait_end() == "completed"
    again = moved.status()["attempts"][1]
    assert (again["first_step"], again["last_step"]) == (first["saved_step"], 400)


def test_a_run_that_is_moved_while_its_job_waits_is_told_and_goes_on_where_it_is(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """Slurm opens the job's log where it was submitted, and says no more than JobLaunchFailure."""
    training = submit(slurm_cluster, tmp_path, *ONE, "slurm.begin=now+1hour")
    old = training.run.path
    place = old.parent.rename(old.parent.with_name("moved")) / old.name
    moved = Training(slurm_cluster, RunDir(place), training.job_id)
    told = f"the run was moved from {old} to {place}"
    said = hpc_train(slurm_cluster, "status", str(place)).stdout
    assert f"  moved      from {old}, where its job looks for the run: the job fails" in said
    slurm_cluster.scontrol("update", f"JobId={training.job_id}", "StartTime=now")
    moved.wait_job("FAILED")
    log = RunDir(old).job_log(training.job_id)
    reason = moved.status()["reason"]
    assert f"began: {told} while its job waited; slurmd could not open {log}; hpc-train" in reason
    done = hpc_train(slurm_cluster, "diagnose", str(place), "--json")
    assert json.loads(done.stdout)["name"] == "moved_in_queue"
    done = hpc_train(slurm_cluster, "resume", str(place), "slurm.begin=null")
    assert done.returncode == 0, done.stderr
    assert moved.wait_end() == "completed", moved.story()
    assert not old.parent.exists()


def test_a_folder_that_is_removed_ends_the_job(slurm_cluster: Cluster, tmp_path: Path) -> None:
    training = submit(slurm_cluster, tmp_path, *ONE)
    training.wait_step()
    shutil.rmtree(training.run.path.parent)
    until(lambda: gone(training), "the job's end", 60)
    assert not training.run.path.exists()


def test_a_job_whose_folder_is_gone_is_told_by_its_number_its_name_and_its_runs_id(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """As while a job waits, or its supervisor has been killed."""
    training = submit(slurm_cluster, tmp_path, *ONE, "slurm.begin=now+1hour")
    name, run_id = training.run.path.parts[-2:]
    shutil.rmtree(training.run.path.parent)
    own = {"XDG_STATE_HOME": str(tmp_path / "state")}
    for command in ("cancel", "status", "logs"):
        for word in (training.job_id, name, run_id, str(training.run.path)):
            done = hpc_train(slurm_cluster, command, word, env=own)
            assert done.returncode == 5, done
            told = f"error: job {training.job_id} is alive, but its run's folder is gone"
            assert done.stderr.startswith(told), done.stderr
            assert f"fix: scancel {training.job_id}" in done.stderr
    for word in ("999999", "other"):
        other = hpc_train(slurm_cluster, "cancel", word, env=own)
        assert f"no run answers to '{word}'" in other.stderr


def test_a_job_that_was_resumed_after_its_end_was_lost_decides_nothing_of_it(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, *ONE, "checkpoint.every_n_steps=10")
    training.wait_step(new=25)
    slurm_cluster.cancel(training.job_id)
    assert training.wait_end() == "cancelled"
    until(lambda: gone(training), "the job's end", 60)  # while Slurm ends it, it is running
    history = training.run.events.read_text().splitlines()
    kept = [line for line in history if json.loads(line)["event"] not in ENDS]
    training.run.events.write_text("".join(f"{line}\n" for line in kept))
    done = hpc_train(slurm_cluster, "resume", str(training.run.path))
    assert done.returncode == 0, done.stderr
    assert training.wait_end() == "completed"


ENDS = ("attempt_ended", "decided", "run_ended", "cancel_requested")
