"""The same commands on a laptop: submitit's local executor, two simulated nodes, gloo."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hpc_train
from tests.e2e.conftest import DIGITS, ROOT, Shell

WITHOUT_END = ("trainer.max_epochs=100000", "trainer.limit_val_batches=0")
MODEL_CHECKPOINT = "pytorch_lightning.callbacks.ModelCheckpoint"
TINY = ROOT / "tests" / "faults" / "tiny.yaml"
LONG = ("--cluster", "local", "--gpus", 1, DIGITS, *WITHOUT_END)


def test_two_simulated_nodes_train_the_digits(here: Shell) -> None:
    done = here.hpc(
        "submit", "--cluster", "local", DIGITS, "trainer.max_epochs=4", "--follow", "--wait"
    )
    status = json.loads(here.hpc("status", "--json").stdout)
    assert status["state"] == "completed"
    assert status["metrics"]["val_acc"] >= 0.9
    assert "val_acc" in done.stdout
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        (note,) = status["attempts"][0]["notes"]
        assert note.startswith("the node shows no GPU: trains on the CPU (accelerator: auto)")
        assert done.stderr.count("no GPU") == 1, "said once"
    assert f"hpc-train status {status['run']}" in done.stdout
    assert Path(status["run_dir"], "metrics", "metrics.csv").is_file()
    assert re.search(r"^digits  running  step \d+/56  epoch \d/4", done.stderr, re.MULTILINE)


def test_a_monitor_that_nothing_logs_is_noted_once_an_epoch_is_over_or_at_the_end(
    here: Shell,
) -> None:
    kept = f"trainer.callbacks=[{{class_path: {MODEL_CHECKPOINT}, init_args: {{monitor: los}}}}]"
    begin = ("submit", "--cluster", "local", "--gpus", 1, DIGITS, "trainer.limit_val_batches=0")
    note = "ModelCheckpoint monitors los, {}; logged: loss; did you mean 'loss'?"
    done = here.hpc(*begin, "trainer.max_steps=4", kept, "--wait")
    assert done.stderr.count(note.format("never logged")) == 1
    assert f"    note     {note.format('never logged')}" in here.hpc("status").stdout
    done = here.hpc(*begin, "trainer.max_epochs=3", kept, "--follow", "--wait")
    early = note.format("not logged by the end of epoch 1")
    assert (done.stderr.count(early), done.stderr.count("never logged")) == (1, 0)
    assert here.hpc("status").stdout.count("    note     ModelCheckpoint") == 1


def test_a_line_of_setup_that_fails_is_noted_and_one_that_cannot_work_ends_the_run(
    here: Shell,
) -> None:
    short = ("--cluster", "local", "--gpus", 1, DIGITS, "trainer.max_steps=4")
    setup = "env.setup=[ls /nosuch, 'trap : ERR', 'false']"
    done = here.hpc("submit", *short, setup, "--wait")
    note = "env.setup.0 (`ls /nosuch`) exited with 2"
    assert f"note: {note}" in done.stderr
    said = here.hpc("status").stdout
    assert f"    note     {note}" in said
    assert said.count("    note     env.setup sets a trap of its own for ERR, so lines of it") == 1
    here.hpc("submit", *short, "env.setup=[conda activate nosuch]", "--wait", code=10)
    (attempt,) = json.loads(here.hpc("status", "--json").stdout)["attempts"]
    assert (attempt["outcome"], attempt["decision"]) == ("user_error", "stop")
    assert (
        "env.setup.0: `conda activate nosuch` exited with 127: that node has no command conda"
        in (attempt["reason"])
    )


def test_a_run_is_cancelled_with_its_steps_and_brought_back_in_another_shape(here: Shell) -> None:
    began = time.time()
    run = here.submit(*LONG)
    here.wait_until(run["run"], lambda status: status["step"] > 20)
    here.hpc("cancel", run["run"])
    stopped = here.ended(run["run"])
    assert stopped["state"] == "cancelled"
    saved = stopped["attempts"][0]["saved_step"]
    assert saved > 20
    assert stopped["attempts"][0]["steps_lost"] == 0
    again = here.hpc("resume", run["run"], "trainer.precision=64", code=3)
    assert "another training" in again.stderr
    here.hpc("resume", run["run"], "--nodes", 1)
    here.wait_until(run["run"], lambda status: status["step"] > saved + 5)
    here.hpc("cancel", run["run"])
    resumed = here.ended(run["run"])
    assert resumed["attempts"][1]["first_step"] == saved
    lasted_s = time.time() - began
    report = json.loads(here.hpc("report", run["run"], "--json").stdout)["runs"][0]
    assert [it["outcome"] for it in report["attempts"]] == ["cancelled", "cancelled"]
    seconds = report["goodput"]["seconds"]
    stretches_s = sum(it["ended"] - it["started"] for it in report["attempts"])
    of_attempts_s = sum(seconds.values()) - seconds["queue"]
    assert of_attempts_s == pytest.approx(stretches_s, rel=0.01)
    assert stretches_s < report["goodput"]["wall_s"] < lasted_s
    assert (seconds["lost"], report["goodput"]["notes"]) == (0, [])
    for attempt, times in zip(report["attempts"], report["goodput"]["attempts"], strict=True):
        steps = attempt["last_step"] - attempt["first_step"]
        assert times["steps"] == steps
        assert times["seconds"]["training"] >= 0.001 * steps
        assert times["seconds"]["startup"] > 1, "importing torch takes that long"
    assert report["nodes"][0]["values"]["memory_gib"] > 0.1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_full_disk_at_the_end_fails_the_run_and_resume_ends_it_once_there_is_room(
    here: Shell,
) -> None:
    disk = here.folder / "disk"
    disk.mkdir()
    here.run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk)
    try:
        model = ("model.init_args.weights_mib=3", "model.init_args.step_s=0")
        short = (*model, "trainer.max_steps=4", f"runs_dir={disk}")
        here.environment["PYTHONPATH"] = str(ROOT)
        here.hpc("submit", "--cluster", "local", TINY, *short, "--wait", code=10)
        (run,) = json.loads(here.hpc("list", "--json", "--runs-dir", disk).stdout)["runs"]
        status = here.status(run["run"])
        end = "trained to step 4, and its last state could not be saved: No space left on device"
        folder = Path(status["run_dir"], "checkpoints")
        fix = f"make room there, then hpc-train resume {run['run']}"
        assert status["reason"] == f"{end} ({folder}); {fix}"
        assert (status["state"], status["outcome"]) == ("failed", "user_error")
        here.run("mount", "-o", "remount,size=64m", disk)
        here.hpc("resume", run["run"], "--wait")
        again = here.status(run["run"])
        assert (again["state"], again["step"]) == ("completed", 4)
        assert again["attempts"][1]["first_step"] == 0
    finally:
        here.run("umount", "--lazy", disk)  # what supervised it may still be in it


def test_a_closed_terminal_ends_a_training_in_the_foreground_with_its_steps_saved(
    here: Shell,
) -> None:
    """It was lost, without a line for going on."""
    ours, theirs = os.openpty()
    words = ("run", DIGITS, *WITHOUT_END, "slurm.nodes=1", "slurm.gpus_per_node=1")
    command = ["-m", "hpc_train.cli", *map(str, words)]
    foreground = subprocess.Popen(
        # The tests themselves may run under nohup, where a closed terminal is no matter.
        ["env", "--default-signal=HUP", "setsid", "--ctty", sys.executable, *command],
        cwd=here.folder,
        env={**os.environ, **here.environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"digits  running  step" not in shown:
        shown += os.read(ours, 4096)
    os.close(ours)
    assert foreground.wait(timeout=100) == 130
    status = json.loads(here.hpc("status", "--json").stdout)
    way = f"hpc-train resume {status['run']} goes on"
    assert status["reason"] == f"its terminal was closed (SIGHUP): {way}"
    assert status["state"] == "cancelled"
    (only,) = status["attempts"]
    assert (only["steps_lost"], only["saved_step"]) == (0, only["last_step"])
    assert way in " ".join(here.hpc("status").stdout.split())


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
    told = here.hpc("diagnose", run["run"], code=3).stdout
    assert "no process of it is left" in told
    assert f"hpc-train resume {run['run']} goes on" in told


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


def test_the_foreground_shows_the_users_prints_and_where_the_training_stands(here: Shell) -> None:
    (here.folder / "mine.py").write_text(
        "from hpc_train.examples.digits import DigitsClassifier\n"
        "class Mine(DigitsClassifier):\n"
        "    def on_train_epoch_end(self):\n"
        "        print(f'epoch {self.current_epoch} of rank {self.global_rank}')\n"
    )
    words = ("trainer.max_epochs=3", "model.class_path=mine.Mine", "slurm.nodes=1")
    done = here.hpc("run", DIGITS, *words)
    mine = [line for line in done.stdout.splitlines() if line.startswith("epoch")]
    assert mine == [f"epoch {number} of rank 0" for number in range(3)]
    assert "hpc-train: attempt 0: 2 ranks on" in done.stdout
    assert "digits  running  step" in done.stderr
    assert "completed  the training is complete" in done.stderr


@pytest.mark.parametrize("where", ["| head -n 1", "2>&1 | head -n 1", "> /dev/full 2>&1"])
def test_a_run_whose_output_nobody_takes_any_more_is_completed(here: Shell, where: str) -> None:
    """It had taken all its steps, and its state was lost."""
    command = shlex.join([sys.executable, "-m", "hpc_train.cli", "run", str(DIGITS)])
    shape = "trainer.max_epochs=2 --nodes 1 --gpus 1"
    done = here.run("bash", "-c", f"set -o pipefail; {command} {shape} {where}")
    assert "Traceback" not in done.stdout + done.stderr
    status = json.loads(here.hpc("status", "--json").stdout)
    assert (status["state"], status["reason"]) == ("completed", "the training is complete")
