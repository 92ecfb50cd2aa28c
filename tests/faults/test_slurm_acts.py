"""What Slurm, its administrator or its user does to a job: cancel, requeue, limits, restarts."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import change_partition, stop_controller
from tests.cluster.processes import start_ticks
from tests.faults.running import SUPERVISOR, Training, hpc_train, submit, until

pytestmark = pytest.mark.slurm

ONE = "slurm.nodes=1"


def test_scancel_is_final_and_resume_goes_on_from_the_last_step(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, ONE)
    training.wait_step()
    slurm_cluster.cancel(training.job_id)
    assert training.wait_end() == "cancelled"
    training.wait_job("CANCELLED")
    training.wait_no_ranks()
    (first,) = training.status()["attempts"]
    assert (first["outcome"], first["decision"], first["steps_lost"]) == ("cancelled", "stop", 0)
    assert slurm_cluster.command(["squeue", "--noheader"]).stdout == ""

    done = hpc_train(
        slurm_cluster,
        "resume",
        str(training.run.path),
        "--nodes",
        "2",
        "--json",
        env={"XDG_STATE_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    training.wait_step(1)
    second = training.attempt(1)
    assert second["first_step"] == first["last_step"] >= 3
    assert len(second["nodes"]) == 2


def test_scancel_shortly_before_the_limit_is_final_as_well(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """It was taken for the limit, and the job that somebody had ended came back."""
    lead = "slurm.signal_lead_s=120"
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=2", "slurm.time=1:00:00", lead)
    training.wait_step()
    slurm_cluster.command(["scontrol", "update", f"JobId={training.job_id}", "TimeLimit=3"])
    slurm_cluster.cancel(training.job_id)
    assert training.wait_end() == "cancelled"
    training.wait_job("CANCELLED")
    (only,) = training.status()["attempts"]
    assert (only["outcome"], only["decision"], only["steps_lost"]) == ("cancelled", "stop", 0)
    assert slurm_cluster.command(["squeue", "--noheader"]).stdout == ""


def test_a_job_that_is_cancelled_while_it_waits_never_trains(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, ONE, "slurm.begin=now+1hour")
    slurm_cluster.cancel(training.job_id)
    training.wait_job("CANCELLED")
    status = training.status()
    assert (status["state"], status["attempts"]) == ("cancelled", [])


def test_hpc_train_cancel_saves_and_ends_the_run(slurm_cluster: Cluster, tmp_path: Path) -> None:
    training = submit(slurm_cluster, tmp_path, ONE)
    training.wait_step()
    assert hpc_train(slurm_cluster, "cancel", str(training.run.path)).returncode == 0
    assert training.wait_end() == "cancelled"
    training.wait_job("CANCELLED")
    training.wait_no_ranks()
    attempt = training.attempt(0)
    assert (attempt["outcome"], attempt["steps_lost"]) == ("cancelled", 0)
    assert "`hpc-train cancel` asked for it" in attempt["reason"]


def test_scontrol_requeue_by_hand_loses_nothing(slurm_cluster: Cluster, tmp_path: Path) -> None:
    training = submit(slurm_cluster, tmp_path, ONE)
    training.wait_step()
    slurm_cluster.scontrol("requeue", training.job_id)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0)
    assert second["first_step"] == first["last_step"] == first["saved_step"]
    assert second["job_id"] == first["job_id"] == training.job_id


def test_a_job_that_somebody_puts_back_and_holds_says_what_lets_it_go(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, ONE)
    training.wait_step()
    slurm_cluster.scontrol("requeuehold", training.job_id)
    training.wait_attempt_end()
    until(lambda: training.status()["state"] == "pending", "the job to be back", 60)
    said = " ".join(hpc_train(slurm_cluster, "status", str(training.run.path)).stdout.split())
    assert "the job was put back into the queue and is held (scontrol requeuehold" in said
    assert f"`scontrol release {training.job_id}` lets it go" in said
    slurm_cluster.scontrol("release", training.job_id)
    training.wait_step(1)


def test_the_time_limits_signal_saves_and_the_next_job_goes_on(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    # Slurm sends the signal up to a minute early: at once, for a job of a minute.
    training = submit(slurm_cluster, tmp_path, ONE, "slurm.time=0:01:00", "slurm.signal_lead_s=30")
    training.wait_attempt_end(timeout_s=150)
    (first, *_) = training.status()["attempts"]
    assert first["outcome"] == "timeout"
    assert first["decision"] == "requeue"
    assert first["steps_lost"] == 0
    assert "time limit" in first["reason"]
    assert training.diagnosed() == ("time_limit", None, None)


def test_a_limit_that_somebody_shortens_is_told_with_what_brings_it_back(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """It was told to render its script anew, though it was submitted."""
    training = submit(slurm_cluster, tmp_path, ONE, "slurm.time=0:20:00")
    training.wait_step()
    slurm_cluster.scontrol("update", f"JobId={training.job_id}", "TimeLimit=1")
    first = training.wait_attempt_end(0)
    run = training.run.run_id
    told = f"hpc-train cancel {run}, then hpc-train resume {run} --time 0:20:00"
    changed = "the job's limit was changed to 0:01:00, and 0:20:00 was asked for"
    assert first.reason.startswith(f"{changed} ({told}); saved at step"), training.story()
    assert hpc_train(slurm_cluster, "cancel", str(training.run.path)).returncode == 0
    again = ("resume", str(training.run.path), "--time", "0:20:00")
    until(lambda: hpc_train(slurm_cluster, *again).returncode == 0, "the end to be known", 60)
    job = slurm_cluster.job(training.status()["job_id"])
    assert (job["JobId"] != training.job_id, job["TimeLimit"]) == (True, "00:20:00")


@pytest.mark.soak
def test_a_time_limit_without_a_signal_before_it_saves_in_its_last_seconds(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    done = hpc_train(
        slurm_cluster,
        *("render", "tests/faults/tiny.yaml", ONE, "slurm.time=0:01:00"),
        f"runs_dir={tmp_path / 'runs'}",
    )
    script = tmp_path / "job.sbatch"
    lines = [line for line in done.stdout.splitlines(keepends=True) if "--signal" not in line]
    script.write_text("".join(lines))
    root = Path(__file__).parents[2]
    slurm_cluster.command(["sbatch", f"--chdir={root}", f"--output={tmp_path}/%j.log", str(script)])
    until(lambda: list((tmp_path / "runs" / "tiny").glob("*/plan.json")), "the run", 120)
    (plan,) = (tmp_path / "runs" / "tiny").glob("*/plan.json")
    training = Training.at(slurm_cluster, plan.parent)
    training.wait_attempt_end(timeout_s=130)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["steps_lost"]) == ("timeout", 0)
    assert second["first_step"] == first["last_step"] > 100


def test_a_killed_supervisor_is_started_again_and_never_beside_its_old_ranks(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=2")
    training.wait_step()
    # A number alone may be given to another process, and outlives its own as a zombie.
    old = {pid: start_ticks(pid) for pids in training.processes().values() for pid in pids}
    (supervisor,) = training.pids("node1", SUPERVISOR)
    os.kill(supervisor, signal.SIGKILL)

    def second_started() -> bool:
        return len(training.records()) > 1

    until(second_started, "the second attempt", 120)
    alive = [pid for pid, born in old.items() if born and start_ticks(pid) == born]
    assert not alive, "an old rank lives beside the new attempt"
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert first["outcome"] == "node_failure"
    assert "the supervisor was killed" in first["reason"]
    assert second["first_step"] == first["saved_step"]
    assert first["steps_lost"] == 0
    assert second["job_id"] == first["job_id"]


def test_a_finished_job_that_is_requeued_by_hand_ends_at_once(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, ONE, "trainer.max_steps=5")
    assert training.wait_end() == "completed"
    training.wait_job("COMPLETED")
    slurm_cluster.scontrol("requeue", training.job_id)
    training.wait_job(["PENDING", "RUNNING"])
    training.wait_job("COMPLETED")
    status = training.status()
    assert (status["state"], len(status["attempts"]), status["step"]) == ("completed", 1, 5)
    assert slurm_cluster.job(training.job_id)["ExitCode"] == "0:0"


def test_a_controller_that_restarts_is_waited_for(slurm_cluster: Cluster, tmp_path: Path) -> None:
    training = submit(slurm_cluster, tmp_path, ONE)
    training.wait_step()
    stop_controller(slurm_cluster, signal.SIGTERM)
    (rank,) = training.pids("node1")
    os.kill(rank, signal.SIGTERM)  # the supervisor wants a requeue, and nobody answers
    until(lambda: not training.pids("node1"), "the rank to save and leave", 60)
    time.sleep(3)
    slurm_cluster.start_controller()
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert first["steps_lost"] == 0
    assert second["first_step"] == first["last_step"]


def test_two_runs_of_one_name_do_not_disturb_one_another(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    both = [submit(slurm_cluster, tmp_path, ONE, "trainer.max_steps=20") for _ in range(2)]
    assert [training.wait_end() for training in both] == ["completed", "completed"]
    assert both[0].run.path != both[1].run.path
    for training in both:
        status = training.status()
        assert (status["step"], len(status["attempts"])) == (20, 1)


def test_array_tasks_are_runs_of_their_own_and_requeue_alone(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    done = hpc_train(
        slurm_cluster, "render", "tests/faults/tiny.yaml", ONE, f"runs_dir={tmp_path / 'runs'}"
    )
    assert done.returncode == 0, done.stderr
    script = tmp_path / "job.sbatch"
    script.write_text(done.stdout)
    root = Path(__file__).parents[2]
    said = slurm_cluster.command(
        [
            "sbatch",
            "--parsable",
            f"--chdir={root}",
            f"--output={tmp_path}/%A_%a.log",
            "--array=0-1",
            str(script),
        ]
    )
    array = said.stdout.strip()

    def runs() -> list[Path]:
        return sorted((tmp_path / "runs" / "tiny").glob("*/plan.json"))

    until(lambda: len(runs()) == 2, "both runs", 120)
    trainings = [Training.at(slurm_cluster, path.parent) for path in runs()]
    for training in trainings:
        training.wait_step()
    slurm_cluster.scontrol("requeue", f"{array}_0")
    (requeued,) = [training for training in trainings if training.job_id == f"{array}_0"]
    requeued.wait_step(1)
    (other,) = [t for t in trainings if t is not requeued]
    assert [a["outcome"] for a in requeued.status()["attempts"]] == ["preempted", None]
    assert [a["outcome"] for a in other.status()["attempts"]] == [None]
    assert requeued.attempt(0)["steps_lost"] == 0


def test_a_job_that_may_not_be_requeued_goes_on_as_a_fresh_one(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    done = hpc_train(
        slurm_cluster, "render", "tests/faults/tiny.yaml", ONE, f"runs_dir={tmp_path / 'runs'}"
    )
    script = tmp_path / "job.sbatch"
    script.write_text(done.stdout)
    root = Path(__file__).parents[2]
    change_partition(slurm_cluster, PreemptMode="CANCEL", GraceTime=0)
    said = slurm_cluster.command(
        [
            "sbatch",
            "--parsable",
            "--no-requeue",
            f"--chdir={root}",
            f"--output={tmp_path}/%j.log",
            "--nodelist=node1",
            str(script),
        ]
    )
    job = said.stdout.strip()
    until(lambda: list((tmp_path / "runs" / "tiny").glob("*/plan.json")), "the run", 120)
    (plan,) = (tmp_path / "runs" / "tiny").glob("*/plan.json")
    training = Training.at(slurm_cluster, plan.parent)
    assert training.job_id == job
    training.wait_step()
    urgent = slurm_cluster.preempt(["node1"])
    until(lambda: len(training.records()) > 1, "the fresh job", 120)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["decision"], first["steps_lost"]) == (
        "preempted",
        "resubmit",
        0,
    )
    assert second["job_id"] != job
    assert second["first_step"] == first["last_step"]
    until(lambda: slurm_cluster.state(urgent) == "RUNNING", "the urgent job to start", 60)
