"""Ranks in which no thread of Python goes on."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Shell

SCRIPTS = Path(__file__).parents[1] / "scripts"
ON_CPUS = ("script.accelerator=cpu", "preflight=off", "requeue.budget=0")


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_ddp_that_is_left_behind_after_its_group_was_destroyed_holds_nobody_up(
    here: Shell, ranks: int
) -> None:
    """Its destructor joined gloo's threads with the GIL, and they waited for that."""
    shutil.copy(SCRIPTS / "left_behind.py", here.folder / "train.py")
    limit = "watchdog.step_timeout_s=60"
    here.hpc("run", "train.py", "--gpus", ranks, *ON_CPUS, limit, "--", 20)
    status = here.status("train")
    assert (status["state"], status["step"], len(status["attempts"])) == ("completed", 400, 1)


def test_a_rank_that_holds_the_gil_is_no_orphan_once_its_run_has_ended(here: Shell) -> None:
    """It hears neither SIGTERM nor the file `abort`, and has a session of its own."""
    shutil.copy(SCRIPTS / "holds_the_gil.py", here.folder / "train.py")
    here.hpc("run", "train.py", "--gpus", 2, *ON_CPUS, "watchdog.step_timeout_s=20", code=10)
    status = here.status("train")
    assert status["attempts"][0]["outcome"] == "hang"
    assert "late: rank 1 on " in status["reason"]
    for rank in range(2):
        process = Path("/proc", (here.folder / f"pid-{rank}").read_text())
        deadline = time.monotonic() + 100
        while process.exists():
            assert time.monotonic() < deadline, process.joinpath("status").read_text()
            time.sleep(0.1)
