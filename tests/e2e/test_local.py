"""The same commands on a laptop: submitit's local executor, two simulated nodes, gloo."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

import hpc_train
from tests.e2e.conftest import DIGITS, Shell

WITHOUT_END = ("trainer.max_epochs=200", "trainer.limit_val_batches=0")
LONG = ("--cluster", "local", "--gpus", 1, DIGITS, *WITHOUT_END)


def test_two_simulated_nodes_train_the_digits(here: Shell) -> None:
    done = here.hpc(
        "submit", "--cluster", "local", DIGITS, "trainer.max_epochs=4", "--follow", "--wait"
    )
    status = json.loads(here.hpc("status", "--json").stdout)
    assert status["state"] == "completed"
    assert status["metrics"]["val_acc"] >= 0.9
    assert "val_acc" in done.stdout
    assert f"hpc-train status {status['run']}" in done.stdout
    assert Path(status["run_dir"], "metrics", "metrics.csv").is_file()


def test_a_run_is_cancelled_with_its_steps_and_brought_back_in_another_shape(here: Shell) -> None:
    run = here.submit(*LONG)
    here.wait_until(run["run"], lambda status: status["step"] > 20)
    here.hpc("cancel", run["run"])
    stopped = here.ended(run["run"])
    assert stopped["state"] == "cancelled"
    saved = stopped["attempts"][0]["saved_step"]
    assert saved > 20
    assert stopped["attempts"][0]["steps_lost"] == 0
    again = here.hpc("resume", run["run"], "trainer.max_epochs=10", code=3)
    assert "another training" in again.stderr
    here.hpc("resume", run["run"], "--nodes", 1)
    here.wait_until(run["run"], lambda status: status["step"] > saved + 5)
    here.hpc("cancel", run["run"])
    resumed = here.ended(run["run"])
    assert resumed["attempts"][1]["first_step"] == saved


def test_a_killed_supervisor_is_seen_and_its_ranks_do_not_stay(here: Shell) -> None:
    run = here.submit(*LONG)
    status = here.wait_until(run["run"], lambda status: status["step"] > 5)
    beat = json.loads(Path(run["run_dir"], "latest", "heartbeat", "rank-0.json").read_text())
    os.kill(status["attempts"][0]["pid"], signal.SIGKILL)
    assert here.ended(run["run"])["state"] == "lost"
    deadline = time.monotonic() + 100
    while Path(f"/proc/{beat['pid']}").exists():
        assert time.monotonic() < deadline, "a rank outlived its supervisor"
        time.sleep(0.5)


# The controller outlives this interpreter on purpose; Python warns of its Popen at the end.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_notebook_can_do_the_same(here: Shell, monkeypatch) -> None:
    monkeypatch.chdir(here.folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(here.folder / "state"))
    loaded = hpc_train.load(DIGITS, "trainer.max_epochs=1", nodes=1, gpus=1)
    assert "#SBATCH --nodes=1" in hpc_train.render(loaded)
    run = hpc_train.submit(loaded, cluster="local")
    status = run.wait(timeout_s=200)
    assert status.state.value == "completed"
    assert "training from step 0" in run.logs()
    assert hpc_train.Run.find("digits").directory == run.directory
