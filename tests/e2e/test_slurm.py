"""The main job on a real Slurm: submit, render, watch, cancel."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.faults import change_partition
from tests.e2e.conftest import DIGITS, Shell

pytestmark = pytest.mark.slurm
TWELVE = ("--nodes", 3, "--gpus", 4, DIGITS, "trainer.max_epochs=5")
SHORT = ("--nodes", 3, "--gpus", 1, DIGITS, "trainer.max_epochs=2")


def test_twelve_ranks_on_three_nodes_learn_the_digits_and_the_script_does_the_same(
    site: Shell, slurm_cluster: Cluster
) -> None:
    run = site.submit(*TWELVE)
    site.hpc("render", *TWELVE, "-o", "job.sbatch")
    sent = site.run("scontrol", "write", "batch_script", run["job_id"], "-").stdout
    folder = run["run_dir"]
    of_run = sent.replace(f"{folder}/submitit/", "").replace(f" --run-dir {folder}", "")
    rendered = (site.folder / "job.sbatch").read_text().strip().splitlines()
    # Names and digests of the config's files: a submitted run has the config in its folder.
    alone = [line for line in rendered if line not in of_run.splitlines()]
    assert [line.partition(":")[0].strip() for line in alone] == ['"rendered_from"']
    assert of_run.strip("\n\0").splitlines() == [line for line in rendered if line not in alone]
    job = site.run("sbatch", "--parsable", "job.sbatch").stdout.strip()
    submitted = site.ended(run["run"], 250)
    assert submitted["state"] == "completed", submitted
    assert submitted["metrics"]["val_acc"] >= 0.95
    assert submitted["attempts"][0]["nodes"] == ["node1", "node2", "node3"]
    slurm_cluster.wait(job, "COMPLETED", timeout_s=250)
    scripted = site.status(job)
    assert scripted["state"] == "completed"
    assert scripted["metrics"] == submitted["metrics"]
    logs = sorted(Path(run["run_dir"], "latest").glob("rank-*.log"))
    assert len(logs) == 12


def test_logs_follow_a_run_that_has_not_begun_and_end_with_it(site: Shell) -> None:
    run = site.submit(*SHORT)
    followed = site.hpc("logs", "-f", run["run"], timeout_s=200)
    told = ("waiting for", "attempt 0 is starting, and rank 0 has written nothing yet")
    assert any(words in followed.stderr for words in told), followed.stderr
    assert "training from step 0 on 3 ranks" in followed.stdout
    assert site.status(run["run"])["state"] == "completed"


def test_wait_gives_the_exit_code_of_the_run(site: Shell) -> None:
    broken = ("--nodes", 1, "--gpus", 1, DIGITS, "data.init_args={}", "model.init_args.width=-3")
    done = site.hpc("submit", *broken, "--wait", code=10, timeout_s=200)
    assert "Traceback" not in done.stderr
    assert "failed  " in done.stderr
    assert "negative dimension -3" in done.stderr, "why it failed"
    assert "hpc-train logs" in done.stdout
    status = json.loads(site.hpc("status", "--json").stdout)
    assert status["outcome"] == "user_error"
    assert status["attempts"][0]["decision"] == "stop"
    assert len(status["attempts"]) == 1


def test_lines_of_setup_that_fail_are_told_of_a_submitted_and_of_a_rendered_job(
    site: Shell,
) -> None:
    short = ("--nodes", 1, DIGITS, "trainer.max_steps=4")
    script = site.folder / "job.sh"
    script.write_text(site.hpc("render", *short, "env.setup=[ls /nosuch, 'true']").stdout)
    site.run("sbatch", "--wait", script)
    assert "    note     env.setup.0 (`ls /nosuch`) exited with 2" in site.hpc("status").stdout
    ended = site.hpc("submit", *short, "env.setup=[sorce x.sh]", "--wait", code=10)
    assert "env.setup.0: `sorce x.sh` exited with 127; fix: correct it" in ended.stderr
    [line] = [it for it in ended.stdout.splitlines() if it.startswith("go on ")]
    assert line.startswith("go on      without env.setup: hpc-train resume ")
    without = line.partition(": hpc-train ")[2].partition(";")[0]
    said = site.hpc(*shlex.split(without), "--wait")
    assert "completed  the training is complete" in said.stderr


def test_ctrl_c_leaves_the_job_alone_and_says_so(site: Shell, slurm_cluster: Cluster) -> None:
    endless = (*SHORT, "trainer.max_epochs=100000")
    process = subprocess.Popen(
        [sys.executable, "-m", "hpc_train.cli", "submit", *map(str, endless), "--follow"],
        cwd=site.folder,
        env={**os.environ, **site.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("submitted")
    assert process.stderr.readline().startswith("digits  ")  # from here on it follows
    process.send_signal(2)
    _, said = process.communicate(timeout=150)
    assert process.returncode == 130
    assert "the job goes on" in said
    assert json.loads(site.hpc("status", "--json").stdout)["state"] in ("pending", "running")


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("--partition", "nope"), "slurm.partition"),
        (("--gpus", "6", "--nodes", "1"), "slurm.gpus_per_node"),
        (("--gpus", "1", "--nodes", "6"), "slurm.nodes"),
        (("--gpus", "1", "--nodes", "6", "--test-only"), "slurm.nodes"),
        (("--gpus", "1", "--nodes", "2", "--spares", "4"), "slurm.spares"),
        (("slurm.nodelist=foo",), "slurm.nodelist"),
        (("slurm.constraint=fast",), "slurm.constraint"),
        (("--partition", "short", "--time", "1:00:00"), "slurm.time"),
        (("slurm.reservation=nope",), "slurm.reservation"),
        (("slurm.licenses=nope",), "slurm.licenses"),
        (("slurm.extra.hint=nothing",), "slurm.extra"),
        (("slurm.exclude=node[1-3]",), "slurm.exclude leaves 0"),
    ],
)
def test_what_slurm_refuses_names_the_key_and_leaves_nothing(
    site: Shell, words: tuple[str, ...], key: str
) -> None:
    done = site.hpc("submit", DIGITS, *words, code=4)
    assert done.stderr.startswith("error: ")
    assert key in done.stderr
    assert not list(site.folder.glob("runs*"))


def test_a_month_that_there_is_not_is_refused_before_slurm_is_asked(site: Shell) -> None:
    done = site.hpc("submit", DIGITS, "slurm.begin=2026-13-45", code=3)
    assert "slurm.begin is '2026-13-45'" in done.stderr
    assert not list(site.folder.glob("runs*"))


def test_test_only_gives_slurms_own_estimate_and_submits_nothing(site: Shell) -> None:
    done = site.hpc("submit", *SHORT, "--test-only")
    assert "to start at" in done.stdout
    assert site.run("squeue", "-h").stdout == ""


@pytest.mark.parametrize(
    "name", ['it\'s "quoted" $(touch owned) `x`; touch owned', "päth #1 %j \\ back", "-n --wrap=x"]
)
def test_a_nasty_name_is_a_name_and_is_never_executed(site: Shell, name: str) -> None:
    run = site.submit("--nodes", 1, "--gpus", 1, DIGITS, f"--name={name}", "slurm.begin=now+1hour")
    assert site.run("squeue", "-h", "-o", "%j").stdout.strip() == name
    assert site.status(run["run"])["state"] == "pending"
    site.hpc("cancel", run["run"])
    assert not list(site.folder.rglob("owned"))
    assert site.ended(run["run"])["state"] == "cancelled"


def test_many_runs_are_looked_at_by_one_query_and_without_accounting(
    site: Shell, tmp_path: Path
) -> None:
    for _ in range(3):
        site.submit("--nodes", 1, "--gpus", 1, DIGITS, "slurm.begin=now+1hour")
    counter = tmp_path / "bin"
    counter.mkdir()
    for program in ("squeue", "sacct"):
        real = site.run("which", program).stdout.strip()
        text = f'#!/bin/sh\necho {program} >> {tmp_path}/calls\nexec {real} "$@"\n'
        (counter / program).write_text(text)
        (counter / program).chmod(0o755)
    site.environment["PATH"] = f"{counter}:{os.environ['PATH']}"
    known = json.loads(site.hpc("list", "--json").stdout)["runs"]
    assert [run["state"] for run in known] == ["pending"] * 3
    assert (tmp_path / "calls").read_text().split() == ["squeue"]


def test_the_foreground_trains_in_an_allocation(site: Shell) -> None:
    command = [sys.executable, "-m", "hpc_train.cli", "run", *map(str, SHORT)]
    done = site.run(
        "salloc", "--quiet", "--nodes=3", "--ntasks-per-node=1", "--gres=gpu:1", *command
    )
    assert "3 ranks on node1, node2, node3" in done.stdout
    assert json.loads(site.hpc("status", "--json").stdout)["state"] == "completed"


def test_a_preflight_by_itself_asks_for_nodes_and_says_go(site: Shell) -> None:
    done = site.hpc("preflight", "--nodes", 3, "--json")
    document = json.loads(done.stdout)
    assert document["verdict"] == "go"
    assert document["use_nodes"] == ["node1", "node2", "node3"]
    assert document["pairs"]
    names = {item["name"] for item in document["environment"]}
    assert {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"} <= names


def test_of_a_job_that_does_not_start_slurms_reason_is_told_once(
    site: Shell, slurm_cluster: Cluster
) -> None:
    change_partition(slurm_cluster, "short", State="DOWN")
    words = ["submit", *map(str, SHORT), "--partition", "short", "--time", "0:04:00", "--follow"]
    process = subprocess.Popen(
        [sys.executable, "-m", "hpc_train.cli", *words],
        cwd=site.folder,
        env={**os.environ, **site.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = [process.stderr.readline()]
    while "digits  pending  does not start" not in lines[-1]:
        assert lines[-1], lines
        lines.append(process.stderr.readline())
    site.hpc("cancel", "digits")
    _, rest = process.communicate(timeout=150)
    told = "".join(lines) + rest
    assert process.returncode == 12
    assert told.count("does not start: slurm.partition is down") == 1
    assert "end it with: hpc-train cancel" in told
    assert told.count("does not start\n") == 1
