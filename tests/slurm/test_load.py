"""What the controller is asked: of a run from its submission to its end, and of who looks at it."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.counting import Counting
from tests.e2e.conftest import DIGITS, Shell

pytestmark = pytest.mark.slurm


@pytest.mark.parametrize("epochs", [3, 30])
def test_a_run_asks_as_much_however_long_it_is_and_its_follower_every_ten_seconds(
    slurm_cluster: Cluster, tmp_path: Path, epochs: int
) -> None:
    counting = Counting(tmp_path / "counting")
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    environ = counting.environment({**os.environ, **slurm_cluster.env(), **state})
    words = ("--nodes", 2, "--gpus", 1, DIGITS, f"trainer.max_epochs={epochs}")
    run = Shell(tmp_path, environ).submit(*words, "--follow", timeout_s=300)
    calls = counting.of_job(run["job_id"])
    assert calls["squeue"] == calls["sacct"] == 0
    assert calls["sinfo"] <= 1, "its version"
    assert calls["scontrol"] <= 2, "where slurmd listens"
    # The probes of the network, the node monitors, the ranks.
    assert calls["srun"] <= 8
    asked = [call.time for call in counting.calls() if not call.job and call.program == "squeue"]
    # The first one looks whether the job can start, before it is followed.
    assert all(b - a >= 9.5 for a, b in itertools.pairwise(asked[1:]))
    length_s = counting.calls()[-1].time - counting.calls()[0].time
    assert len(asked) <= 3 + length_s / 10
    assert counting.from_outside()["sbatch"] == 1
