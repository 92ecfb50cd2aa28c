"""A cancel of ranks that do not leave, and of a job that has not started any: it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import STARTED_S, Training, hpc_train, submit, until

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
