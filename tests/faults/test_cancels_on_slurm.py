"""A cancel of ranks that do not leave, and of a job that has not started any: it holds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import STARTED_S, SUPERVISOR, Training, hpc_train, submit, until

pytestmark = pytest.mark.slurm

STAY = "data.class_path=tests.faults.tiny.LongSetup"


@pytest.fixture
def impatient(slurm_cluster: Cluster) -> Iterator[Cluster]:
    """Where srun gives its tasks up before slurmd kills them, as it does on a busy node."""
    conf = Path(slurm_cluster.env()["SLURM_CONF"])
    before = conf.read_text()
    assert "KillWait=30\n" in before
    conf.write_text(before.replace("KillWait=30\n", "KillWait=2\n"))
    yield slurm_cluster
    conf.write_text(before)


def cancel(cluster: Cluster, training: Training, by: str) -> None:
    if by == "scancel":
        cluster.cancel(training.job_id)
    else:
        assert hpc_train(cluster, "cancel", str(training.run.path)).returncode == 0


@pytest.mark.parametrize(
    ("by", "ranks"), [("hpc-train", 1), ("hpc-train", 3), ("scancel", 2), ("scancel", 3)]
)
def test_ranks_that_outlast_srun_undo_no_cancel(
    impatient: Cluster, tmp_path: Path, by: str, ranks: int
) -> None:
    training = submit(impatient, tmp_path, STAY, "slurm.nodes=1", f"slurm.gpus_per_node={ranks}")
    until(lambda: len(training.beats(0)) == ranks, "the ranks", STARTED_S)
    cancel(impatient, training, by)
    assert training.wait_end() == "cancelled"
    (attempt,) = training.status()["attempts"]
    assert (attempt["outcome"], attempt["decision"]) == ("cancelled", "stop")
    assert "the ranks did not leave within" in attempt["reason"]
    training.wait_job("CANCELLED")
    assert len(training.records()) == 1


def test_a_cancel_in_the_lines_of_env_setup_is_told_as_one_before_the_run_began(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    mark = tmp_path / "begun"
    lines = f"env.setup=[touch {mark},sleep 60]"
    training = submit(slurm_cluster, tmp_path, lines, "slurm.nodes=1")
    until(mark.exists, "the lines", STARTED_S)
    for _ in range(2):
        hpc_train(slurm_cluster, "cancel", str(training.run.path))
    training.wait_job("CANCELLED")
    status = training.status()
    assert (status["state"], status["attempts"]) == ("cancelled", [])
    assert status["reason"] == "cancelled before it began"


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        ("hpc-train", "`hpc-train cancel` asked for it"),
        ("scancel", "the job was cancelled (scancel)"),
    ],
)
def test_an_attempt_that_was_killed_in_a_cancel_is_cancelled_and_the_resumed_run_goes_on(
    impatient: Cluster, tmp_path: Path, by: str, reason: str
) -> None:
    training = submit(impatient, tmp_path, STAY, "slurm.nodes=1")
    until(lambda: training.beats(0), "the ranks", STARTED_S)
    (node,) = training.records()[0].nodes
    cancel(impatient, training, by)
    for supervisor in training.pids(node, SUPERVISOR):
        with contextlib.suppress(ProcessLookupError):  # a child of its, between fork and exec
            os.kill(supervisor, signal.SIGKILL)
    training.wait_job("CANCELLED")
    training.wait_no_ranks()
    assert training.status()["state"] == "cancelled"
    last = max(beat.time for beat in training.beats(0))

    def resumed() -> None:
        done = hpc_train(impatient, "resume", str(training.run.path))
        assert done.returncode == 0, done.stdout + done.stderr

    def ends_with_its_last_sign(status: dict[str, object]) -> None:
        first = status["attempts"][0]  # type: ignore[index]
        assert (first["outcome"], first["reason"].partition("; ")[0]) == ("cancelled", reason)
        assert abs(first["ended"] - last) < 10, (first, last)

    resumed()
    ends_with_its_last_sign(training.status())
    until(lambda: len(training.records()) == 2, "the resumed attempt", STARTED_S)
    until(lambda: training.beats(1), "its ranks", STARTED_S)
    status = training.status()
    assert status["state"] == "running"
    ends_with_its_last_sign(status)
    cancel(impatient, training, "hpc-train")
    assert training.wait_end() == "cancelled"
    first, second = training.status()["attempts"]
    assert (first["outcome"], second["outcome"]) == ("cancelled", "cancelled")
    assert first["decision"] == ""


@pytest.mark.parametrize("late_s", [0.1, 0.5])
@pytest.mark.parametrize("by", ["hpc-train", "scancel"])
def test_a_cancel_while_the_nodes_are_checked_blames_none_of_them(
    slurm_cluster: Cluster, tmp_path: Path, by: str, late_s: float
) -> None:
    """Its probes end with it: healthy nodes were left out of all later runs for a day."""
    training = submit(slurm_cluster, tmp_path, "slurm.nodes=3", "preflight.mode=full")
    until(training.records, "the attempt", STARTED_S)
    time.sleep(late_s)
    cancel(slurm_cluster, training, by)
    training.wait_job("CANCELLED")
    assert training.status()["state"] == "cancelled"
    (attempt,) = training.records()
    assert attempt.blamed == ()
    own = {"XDG_STATE_HOME": str(tmp_path / "state")}
    listed = hpc_train(slurm_cluster, "nodes", "--json", env=own)
    assert listed.returncode == 0, listed
    assert json.loads(listed.stdout)["nodes"] == []
