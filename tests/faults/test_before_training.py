"""Jobs that end before a line of Python, and a controller that stops answering: what is told."""

from __future__ import annotations

import json
import os
import signal
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.faults.running import ROOT, Training, hpc_train, submit, until

pytestmark = pytest.mark.slurm

ONE = "slurm.nodes=1"
TINY = "tests.faults.tiny"
KEYS = ("env.venv", "env.conda", "env.modules")  # those whose failure has a fix of its own


def test_a_job_that_ends_before_python_starts_tells_its_logs_last_words(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    pool = ThreadPoolExecutor()  # this one waits beside the others
    typed = ["submit", "--wait", "tests/faults/tiny.yaml", ONE, "env.conda=nope", "name=waits"]
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    waited = pool.submit(
        hpc_train, slurm_cluster, *typed, f"runs_dir={tmp_path / 'runs'}", env=state
    )
    wanted = {
        "env.venv=/nope/on/this/host": ("env.venv cannot be activated: /nope/on/this/host",),
        "env.conda=nope": ("hpc-train: error: env.conda: conda is not on the PATH",),
        "env.modules=[cuda/12.9]": (
            "hpc-train: error: env.modules: this node has no command module",
        ),
        "env.setup=['true; exec false']": ("left no log",),
        f"env={{venv: {tmp_path}/bare, setup: ['true']}}": ("No module named 'hpc_train'",),
    }
    jobs = {
        override: submit(slurm_cluster, tmp_path, ONE, override, cwd=tmp_path)
        for override in wanted
    }
    for override, training in jobs.items():
        training.wait_job("FAILED")
        words = wanted[override]
        until(lambda one=training: one.status()["state"] == "failed", f"{override} to fail", 30)
        status = training.status()
        assert status["attempts"] == [], override
        for word in words:
            assert word in status["reason"], override
        assert "NonZeroExitCode" not in status["reason"] or words == ("left no log",)
        screen = hpc_train(slurm_cluster, "status", str(training.run.path)).stdout
        screen = " ".join(screen.split())
        assert all(screen.count(word) == 1 for word in words), screen
        assert screen.count("fix") == 1 or override.split("=")[0] not in KEYS, screen
        logs = hpc_train(slurm_cluster, "logs", str(training.run.path))
        assert logs.returncode != 0
        said = hpc_train(slurm_cluster, "diagnose", str(training.run.path), "--json")
        name = "failed" if words == ("left no log",) else "environment"
        name = "refused_at_start" if override.split("=")[0] in KEYS else name
        assert (said.returncode, json.loads(said.stdout)["name"]) == (3, name), said.stdout
        if words != ("left no log",):
            assert status["last_words"]
            assert str(training.run.job_log(training.job_id)) in screen
            assert words[-1] in logs.stderr
    listed = hpc_train(slurm_cluster, "list", "--runs-dir", str(tmp_path / "runs"))
    assert all(words[-1] in listed.stdout for words in wanted.values()), listed.stdout
    done = waited.result()
    assert done.returncode == 10
    assert (
        "before its training began: hpc-train: error: env.conda: conda is not on the PATH"
        in done.stderr
    )


def test_a_rendered_script_that_is_submitted_elsewhere_says_where_to_submit_it(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project, elsewhere):
        folder.mkdir()
    (project / "my_net.py").write_text("from tests.faults.tiny import Tiny as Net\n")
    config = (ROOT / "tests/faults/tiny.yaml").read_text()
    (project / "cfg.yaml").write_text(config.replace("tests.faults.tiny.Tiny,", "my_net.Net,"))
    environ = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
    words = ["render", "cfg.yaml", ONE, "-o", "job.sbatch"]
    rendered = hpc_train(slurm_cluster, *words, env=environ, cwd=project)
    assert rendered.returncode == 0, rendered.stderr
    sbatch = ["sbatch", "--parsable", f"--chdir={elsewhere}", str(project / "job.sbatch")]
    said = slurm_cluster.command(["env", f"PYTHONPATH={ROOT}", *sbatch])
    log = elsewhere / f"slurm-{said.stdout.strip()}.log"
    until(lambda: log.exists() and "fix:" in log.read_text(), "the job's end", 120)
    told = " ".join(log.read_text().split())
    assert f"there is no module my_net for my_net.Net in {elsewhere}, where the job was" in told
    literal = f"cd {project} && sbatch job.sbatch; or name"
    assert f"in the folder that it was rendered in: {literal}" in told
    assert not (elsewhere / "runs").exists(), "no run that a resume would bring back there"


@pytest.mark.parametrize("gone", ["my_net.py", "layers.py", "sub/go.py", "sub/aid.py"])
def test_code_that_is_deleted_while_the_job_waits_is_named_and_put_back(
    slurm_cluster: Cluster, tmp_path: Path, gone: str
) -> None:
    """It was told to submit in the folder of its code, or to install its own module."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "layers.py").write_text("deep = 1\n")
    (tmp_path / "my_net.py").write_text(
        f"from layers import deep\nfrom {TINY} import Tiny as Net\n"
    )
    (tmp_path / "sub/go.py").write_text("import aid\n")
    (tmp_path / "sub/aid.py").write_text("")
    config = (ROOT / "tests/faults/tiny.yaml").read_text()
    (tmp_path / "cfg.yaml").write_text(config.replace(f"{TINY}.Tiny,", "my_net.Net,"))
    words: tuple[str, ...] = ("cfg.yaml", "trainer.max_steps=5")
    if gone.startswith("sub/"):
        words = ("sub/go.py", "slurm.gpus_per_node=1", "preflight.mode=off")
    environ = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
    typed = ("submit", "--json", *words, ONE, "slurm.partition=train", "slurm.begin=now+1hour")
    done = hpc_train(slurm_cluster, *typed, env=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    training = Training.at(slurm_cluster, Path(json.loads(done.stdout)["run_dir"]))
    (tmp_path / gone).rename(tmp_path / "renamed.txt")
    slurm_cluster.scontrol("update", f"JobId={training.job_id}", "StartTime=now")
    assert training.wait_end() == "failed", training.story()
    status = training.status()
    (attempt,) = status["attempts"]
    what = f"{Path(gone).name} was there at the submission and is gone: {tmp_path / gone}"
    then = f"put it back, and then hpc-train resume {training.run.run_id}"
    assert f"{what} ({then})" in status["reason"] or f"{what}; {then}" in status["reason"]
    assert f"the code is not that of the submission: {gone} (deleted)" in attempt["notes"][0]
    (tmp_path / "renamed.txt").rename(tmp_path / gone)
    again = ("resume", str(training.run.path), "slurm.begin=null")
    assert hpc_train(slurm_cluster, *again, env=environ, cwd=tmp_path).returncode == 0
    if gone.startswith("sub/"):
        return  # a script without steps is not what is tried here
    assert training.wait_end() == "completed", training.story()


def test_a_controller_that_stops_is_outranked_by_the_runs_own_history_and_cancel_still_works(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    waits = submit(slurm_cluster, tmp_path, ONE, "slurm.begin=now+1hour", "name=waits")
    training = submit(slurm_cluster, tmp_path, ONE)
    training.wait_step()
    controller = slurm_cluster.processes.find("slurmctld")
    assert controller is not None
    slurm_cluster.on_reset(lambda: os.kill(controller.pid, signal.SIGCONT))
    os.kill(controller.pid, signal.SIGSTOP)

    def told(*words: str) -> tuple[int, str]:
        done = hpc_train(slurm_cluster, *words)
        return done.returncode, done.stdout + done.stderr

    code, said = told("status", "--json", str(training.run.path))
    status = json.loads(said)
    assert (code, status["state"], status["scheduler"]) == (0, "running", "silent")
    assert status["step"] >= 3
    _, said = told("status", str(training.run.path))
    assert "Slurm does not answer; last known: running, step " in said
    _, said = told("list", "--runs-dir", str(tmp_path / "runs"))
    assert "last known: running, step " in said
    assert "last known: pending" in said
    code, said = told("cancel", str(waits.run.path))
    assert code == 4
    assert f"job {waits.job_id} has not begun: it was not cancelled" in said
    code, said = told("cancel", str(training.run.path))
    assert code == 0
    assert "its ranks were told through" in said
    assert training.wait_end() == "cancelled"
    training.wait_no_ranks()
    os.kill(controller.pid, signal.SIGCONT)
    (attempt,) = training.status()["attempts"]
    assert (attempt["outcome"], attempt["steps_lost"]) == ("cancelled", 0)
    until(lambda: waits.status()["scheduler"] is None, "Slurm to answer", 60)
    assert waits.status()["state"] == "pending"
    assert hpc_train(slurm_cluster, "cancel", str(waits.run.path)).returncode == 0
    waits.wait_job("CANCELLED")


def test_a_job_whose_shell_ends_with_0_before_python_has_failed(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    by_exit = submit(slurm_cluster, tmp_path, ONE, "env.setup=['true && exit 0']", cwd=tmp_path)
    by_exec = submit(slurm_cluster, tmp_path, ONE, "env.setup=['true; exec true']", cwd=tmp_path)
    by_exit.wait_job("FAILED")  # so that no job that waits for it begins
    by_exec.wait_job("COMPLETED")
    for training, words in ((by_exit, "`exit 0`, exit code 0"), (by_exec, "ends its shell")):
        status = training.status()
        assert (status["state"], status["attempts"]) == ("failed", [])
        assert words in status["reason"]
        assert (
            hpc_train(slurm_cluster, "resume", "--dry-run", str(training.run.path)).returncode == 0
        )


def test_a_path_without_srun_is_told_before_an_attempt_begins(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    lost = submit(slurm_cluster, tmp_path, ONE, "env.setup=['export PATH=/nope']", cwd=tmp_path)
    lost.wait_job("FAILED")
    status = lost.status()
    assert (status["state"], status["attempts"]) == ("failed", [])
    assert "srun is not on the PATH of the job, as env leaves it (PATH=/nope)" in status["reason"]
