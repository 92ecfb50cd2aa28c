"""One rank dies, stops or errs: who it was is said, and what follows fits."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from hpc_train.runs.checkpoints import checkpoint_steps
from tests.cluster import Cluster
from tests.cluster.faults import pause, small_disk
from tests.faults.running import RANK, hpc_train, submit, until

pytestmark = pytest.mark.slurm


def test_a_killed_rank_is_named_and_the_run_goes_on_from_its_last_checkpoint(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    often = ("checkpoint.every_n_steps=20", "model.init_args.step_s=0.2")
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=3", *often)
    training.wait_step(new=25)
    training.wait_saved(20)
    (victim,) = training.pids("node2")
    os.kill(victim, signal.SIGKILL)
    ended = training.wait_attempt_end()
    training.wait_no_ranks()
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert first["outcome"] == "node_failure"
    assert "rank 1 on node2 was killed by SIGKILL" in first["reason"]
    assert (first["rank"], first["node"], first["decision"]) == (1, "node2", "requeue")
    assert first["blamed"] == first["excluded"] == []
    assert first["saved_step"] % 20 == 0
    assert second["first_step"] == first["saved_step"] == ended.saved_step
    assert 0 <= first["steps_lost"] <= 25 + 20
    assert training.diagnosed() == ("killed_rank", 1, "node2")


@pytest.mark.soak
def test_sigterm_to_a_single_rank_saves_on_all_and_goes_on(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=2")
    training.wait_step()
    (told,) = training.pids("node2")
    os.kill(told, signal.SIGTERM)
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["steps_lost"], first["decision"]) == ("preempted", 0, "requeue")
    assert "SIGTERM" in first["reason"]
    assert second["first_step"] == first["last_step"] == first["saved_step"]


def test_a_stopped_rank_is_called_late_by_name_and_its_node_is_left_out(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(
        slurm_cluster,
        tmp_path,
        "slurm.nodes=2",
        "watchdog.floor_s=14",
        "checkpoint.every_n_steps=5",
    )
    training.wait_step(new=10)
    training.wait_saved(5)
    late = training.records()[0].nodes[1]
    pause(slurm_cluster, late, RANK)
    training.wait_attempt_end(timeout_s=120)
    training.wait_no_ranks()
    training.wait_step(1)
    first, second = training.status()["attempts"]
    assert first["outcome"] == "hang"
    assert f"late: rank 1 on {late}" in first["reason"]
    assert first["blamed"] == first["excluded"] == [late]
    assert late not in second["nodes"]
    assert second["first_step"] == first["saved_step"] >= 5
    stacks = (training.run.attempt(0).stacks / "rank-0.txt").read_text()
    # Where rank 0 waits for the other one: in a step, or at the boundary behind a save.
    assert any(place in stacks for place in ("all_reduce", "backward", "all_gather"))
    assert training.diagnosed() == ("hang", 1, late)


@pytest.mark.parametrize(
    ("overrides", "error", "step", "text", "cause"),
    [
        (["model.init_args.raise_at=50"], "ValueError: label ", 50, "raise ValueError", "failed"),
        (["model.init_args.raise_at=0"], "ValueError: label ", 0, "raise ValueError", "failed"),
        (
            ["model.init_args.nan_at=7"],
            *("FloatingPointError: the loss is nan", 7, "raise Floating", "nan"),
        ),
    ],
)
def test_an_error_in_the_training_is_told_with_its_line_and_is_not_tried_again(
    overrides: list[str],
    error: str,
    step: int,
    text: str,
    cause: str,
    slurm_cluster: Cluster,
    tmp_path: Path,
) -> None:
    training = submit(
        slurm_cluster, tmp_path, "slurm.nodes=2", "model.init_args.step_s=0.01", *overrides
    )
    assert training.wait_end() == "failed"
    training.wait_job("FAILED")
    training.wait_no_ranks()
    (attempt,) = training.status()["attempts"]
    assert (attempt["outcome"], attempt["decision"]) == ("user_error", "stop")
    assert attempt["error"].startswith(error)
    assert attempt["failed_step"] == step
    file, line = attempt["where"].rsplit(":", 1)
    assert Path(file).name == "tiny.py"
    assert text in Path(file).read_text().splitlines()[int(line) - 1]
    assert f"failed at step {step}" in attempt["reason"]
    assert slurm_cluster.job(training.job_id)["ExitCode"] == "10:0"
    watched = hpc_train(slurm_cluster, "status", str(training.run.path))
    assert error in watched.stdout
    assert attempt["where"] in watched.stdout
    assert f"hpc-train diagnose {training.run.path}" in watched.stdout
    assert training.diagnosed() == (cause, attempt["rank"], attempt["node"])


def test_a_rank_that_crashes_is_told_with_the_line_it_crashed_in(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=2", "model.init_args.crash_at=5")
    assert training.wait_end() == "failed"
    training.wait_no_ranks()
    (attempt,) = training.status()["attempts"]
    assert (attempt["outcome"], attempt["decision"]) == ("user_error", "stop")
    assert attempt["reason"].startswith("rank 1 on node2 was killed by SIGSEGV first, in string_at")
    file, line = attempt["where"].rsplit(":", 1)
    assert "ctypes.string_at(0)" in Path(file).read_text().splitlines()[int(line) - 1]
    assert attempt["reason"].endswith("its stack is in attempts/0/stacks/rank-1.txt")
    stack = (training.run.path / "attempts/0/stacks/rank-1.txt").read_text()
    assert "Fatal Python error: Segmentation fault" in stack
    assert not (training.run.path / "attempts/0/stacks/rank-0.txt").read_text()
    assert training.diagnosed() == ("segfault", 1, "node2")


@pytest.mark.parametrize(
    ("by", "nodes", "reason"),
    [
        ("os", 1, "rank 0 on node1 ended itself at step 5: os._exit(0) before the run was"),
        ("os", 2, "rank 0 on node1 ended itself at step 5: os._exit(0) before the run was"),
        ("sys", 2, "rank 0 on node1 failed at step 5: SystemExit: 0"),
        ("c", 1, "rank 0 ended itself with exit code 0 before the run was complete (os._exit, or"),
        ("c", 3, "rank 0 on node1 ended itself at step 5: exit code 0 before the run was complete"),
    ],
)
def test_a_rank_that_ends_itself_with_exit_code_0_is_the_users_error(
    by: str, nodes: int, reason: str, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    model = f"{{class_path: tests.faults.tiny.EndsItself, init_args: {{by: {by}}}}}"
    training = submit(slurm_cluster, tmp_path, f"model={model}", f"slurm.nodes={nodes}")
    assert training.wait_end() == "failed"
    training.wait_no_ranks()
    (attempt,) = training.status()["attempts"]
    assert (attempt["outcome"], attempt["decision"]) == ("user_error", "stop"), training.story()
    assert attempt["reason"].startswith(reason)
    file, _, line = attempt["where"].rpartition(":")
    if by != "c":
        assert "leave[self.by](self.status)" in Path(file).read_text().splitlines()[int(line) - 1]
    if by != "sys":
        assert training.diagnosed()[0] == "ended_itself"


def test_a_module_that_fails_at_import_is_told_with_its_line(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    training = submit(
        slurm_cluster,
        tmp_path,
        "slurm.nodes=1",
        "model.class_path=tests.faults.broken.Model",
        "model.init_args=null",
    )
    assert training.wait_end() == "failed"
    (attempt,) = training.status()["attempts"]
    assert (attempt["outcome"], attempt["decision"]) == ("user_error", "stop")
    assert "this module was never meant to be imported" in attempt["reason"]
    assert "broken.py:7" in attempt["where"]


def test_a_full_disk_is_said_and_costs_checkpoints_but_not_the_training(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    disk = small_disk(slurm_cluster, "full", 16)
    training = submit(
        slurm_cluster,
        disk,
        "slurm.nodes=1",
        "checkpoint.every_n_steps=10",
        "checkpoint.keep_last=1",
        "model.init_args.weights_mib=2",
        "trainer.max_steps=800",
    )
    training.wait_step(new=15)
    training.wait_saved(10)
    filler = disk / "filler"

    def is_full() -> bool:
        # Again and again: what is pruned or given up meanwhile makes room for one save more.
        with contextlib.suppress(OSError), filler.open("ab", buffering=0) as stream:
            while True:
                stream.write(b"x" * 4096)
        steps = [beat.step for beat in training.beats(0)]
        return bool(steps) and min(steps) > max(checkpoint_steps(training.run)) + 25

    until(is_full, "two saves that failed", 60)
    good = max(checkpoint_steps(training.run))
    full = training.wait_step(new=1)
    # Longer than the watchdog's floor of 10 s: signs of life have to come through as well.
    training.wait_step(new=full + 220)
    assert max(checkpoint_steps(training.run)) == good, "the last good one stays"
    assert "could not be saved" in training.run.attempt(0).rank_log(0).read_text()
    failed = training.beats(0)[0].failed_saves
    assert failed is not None
    assert failed.error == "No space left on device"
    assert failed.since_step > good
    filler.unlink()
    assert training.wait_end() == "completed"
    (attempt,) = training.status()["attempts"]
    assert (attempt["last_step"], attempt["outcome"]) == (800, "completed")
