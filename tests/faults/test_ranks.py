"""One rank dies, stops or errs: who it was is said, and what follows fits."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import pause
from tests.faults.running import RANK, hpc_train, submit

pytestmark = pytest.mark.slurm


def test_a_killed_rank_is_named_and_the_run_goes_on_from_its_last_checkpoint(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=3", "checkpoint.every_n_steps=20")
    training.wait_step(new=25)
    (victim,) = training.pids("node2")
    os.kill(victim, signal.SIGKILL)
    killed = time.monotonic()
    ended = training.wait_attempt_end()
    print(f"seen after {time.monotonic() - killed:.1f} s")
    training.wait_no_ranks()
    training.wait_step(1)
    first, second = training.status()["attempts"]
    print(first)
    assert first["outcome"] == "node_failure"
    assert "rank 1 on node2 was killed by SIGKILL" in first["reason"]
    assert (first["rank"], first["node"], first["decision"]) == (1, "node2", "requeue")
    assert first["blamed"] == first["excluded"] == []
    assert first["saved_step"] % 20 == 0
    assert second["first_step"] == first["saved_step"] == ended.saved_step
    assert 0 <= first["steps_lost"] <= 25 + 20


def test_sigterm_to_a_single_rank_saves_on_all_and_goes_on(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=2")
    training.wait_step()
    (told,) = training.pids("node2")
    os.kill(told, signal.SIGTERM)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    print(first)
    assert (first["outcome"], first["steps_lost"], first["decision"]) == ("preempted", 0, "requeue")
    assert "SIGTERM" in first["reason"]
    assert second["first_step"] == first["last_step"] == first["saved_step"]


def test_a_stopped_rank_is_called_late_by_name_and_its_stacks_are_kept(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(
        slurm_cluster, tmp_path, "slurm.nodes=3", "watchdog.floor_s=6", "checkpoint.every_n_steps=5"
    )
    training.wait_step(new=10)
    pause(slurm_cluster, "node3", RANK)
    ended = training.wait_attempt_end(timeout_s=45)
    assert ended.outcome is not None
    print(training.attempt(0))
    assert ended.outcome.value == "hang"
    assert "rank 2 on node3" in ended.reason
    assert ended.blamed == ended.excluded == ("node3",)
    stacks = training.run.attempt(0).stacks
    for rank in (0, 1):
        text = (stacks / f"rank-{rank}.txt").read_text()
        assert "most recent call first" in text
        assert "all_reduce" in text or "backward" in text
    training.wait_no_ranks()


def test_an_error_in_the_training_is_told_with_its_line_and_is_not_tried_again(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(
        slurm_cluster,
        tmp_path,
        "slurm.nodes=2",
        "model.init_args.raise_at=50",
        "model.init_args.step_s=0.01",
    )
    assert training.wait_end() == "failed"
    training.wait_job("FAILED")
    status = training.status()
    print(status)
    assert len(status["attempts"]) == 1
    (attempt,) = status["attempts"]
    assert (attempt["outcome"], attempt["decision"]) == ("user_error", "stop")
    assert attempt["error"].startswith("ValueError: label ")
    assert attempt["failed_step"] == 50
    file, line = attempt["where"].rsplit(":", 1)
    assert Path(file).name == "tiny.py"
    assert "raise ValueError" in Path(file).read_text().splitlines()[int(line) - 1]
    assert "failed at step 50" in attempt["reason"]
    assert slurm_cluster.job(training.job_id)["ExitCode"] == "10:0"
    watched = hpc_train(slurm_cluster, "status", str(training.run.path))
    assert "ValueError" in watched.stdout
