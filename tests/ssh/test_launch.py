"""Machines without a scheduler: real ranks behind a real sshd, in networks of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_heartbeats
from tests.cluster import Cluster
from tests.cluster.faults import cut_cable
from tests.e2e.test_container import STAND_IN, image_in
from tests.faults.running import CONFIG, ROOT, until
from tests.ledger import compare, read_ledger
from tests.runs.test_snapshot import git
from tests.ssh.hosts import Hosts

pytestmark = pytest.mark.slurm
STEPS = 60
WORK = (
    "global_batch_size=12",
    "model.init_args.ledger=true",
    "model.init_args.hidden=16",
    f"trainer.max_steps={STEPS}",
    "checkpoint.every_n_steps=10",
)


@pytest.fixture
def hosts(slurm_cluster: Cluster, tmp_path: Path) -> Hosts:
    return Hosts(slurm_cluster, tmp_path / "ssh")


def test_a_killed_rank_a_ctrl_c_and_a_resume_change_no_bit_of_the_result(hosts: Hosts) -> None:
    hosts.start_sshd("node2", port=2222)
    named = "root@a,b:2222"
    checked = "preflight={mode: quick, monitor_interval_s: 1}"
    plain = hosts.hpc(
        *hosts.words(named, *WORK, "model.init_args.step_s=0", "name=reference", checked)
    )
    assert "preflight: go: 2 nodes over TCP, 1 round" in plain.stdout
    assert "GLOO_SOCKET_IFNAME=eth0" in plain.stdout
    assert "2 ranks on a, b" in plain.stdout
    launched = hosts.launch(named, *WORK, "model.init_args.step_s=0.5")
    training = launched.training
    training.wait_step(0, new=12)
    training.wait_saved(10)
    (victim,) = launched.ranks("b")
    os.kill(victim, signal.SIGKILL)
    training.wait_step(1, new=5)
    os.kill(launched.process.pid, signal.SIGINT)
    assert launched.end() == 130
    training.wait_no_ranks()
    run = str(training.run.path)
    hosts.hpc("resume", run, "--follow")

    status = json.loads(hosts.hpc("status", run, "--json").stdout)
    first, second, third = status["attempts"]
    assert (status["state"], first["outcome"]) == ("completed", "node_failure")
    assert "rank 1 on b was killed by SIGKILL" in first["reason"]
    assert (first["decision"], first["blamed"], first["nodes"]) == ("requeue", [], ["a", "b"])
    assert (second["outcome"], second["steps_lost"]) == ("cancelled", 0)
    assert third["first_step"] == second["saved_step"] > first["saved_step"] > 0
    assert "going on after step" in hosts.hpc("logs", run).stdout
    assert training.run.run_id in hosts.hpc("list", "--all").stdout
    (reference,) = hosts.runs.glob("reference/*")
    monitored = {file.name for file in (reference / "monitor").glob("*.jsonl")}
    assert monitored == {"a.jsonl", "b.jsonl"}
    result = compare(read_ledger(reference / "ledger"), read_ledger(training.run.path / "ledger"))
    assert (result.problems, result.steps) == ([], STEPS)
    assert result.retaken == first["steps_lost"] > 0


def test_a_host_that_vanishes_is_replaced_by_the_one_in_reserve(hosts: Hosts) -> None:
    words = ("--nodes", "2", "global_batch_size=4", "checkpoint.every_n_steps=5")
    launched = hosts.launch("a,b,c", *words, "preflight.mode=quick")
    training = launched.training
    training.wait_step(0, new=6)
    training.wait_saved(5)
    cut_cable(hosts.cluster, "node2", end="switch")
    training.wait_step(1, new=2)
    hosts.hpc("cancel", str(training.run.path))
    assert launched.end() == 12
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["node"]) == ("node_failure", "b")
    assert first["reason"] == "b no longer answers"
    assert second["nodes"] == ["a", "c"]
    assert second["first_step"] == first["saved_step"] > 0
    assert {beat.node for beat in training.beats(1)} == {"a", "c"}
    said = launched.said()  # a busy machine measures a slow pair once more
    assert re.search(r"preflight: go: 2 nodes over TCP, [34] rounds of pairs", said), said
    until(lambda: not launched.ranks("b"), "the ranks behind the cut cable to end", 120)


def test_hosts_named_by_ipv6_address_behind_a_jump_host_keep_their_connection(
    hosts: Hosts,
) -> None:
    """As in a ~/.ssh/config with ProxyJump and ControlMaster; c alone reaches these addresses."""
    addresses = hosts.name_by_ipv6({"a": "fd77::1", "b": "fd77::2", "c": "fd77::3"})
    with tempfile.TemporaryDirectory(dir="/tmp") as sockets:  # sun_path holds 108 bytes (unix(7))
        kept = ("  ControlMaster auto", f"  ControlPath {sockets}/%C", "  ControlPersist yes")
        hosts.write_config("Host fd77::*", "  ProxyJump c", *kept)
        launched = hosts.launch(
            "[fd77::1],root@[fd77::2]:22",
            *("global_batch_size=4", "trainer.max_steps=100000", "checkpoint.every_n_steps=2"),
            "preflight={mode: quick, monitor_interval_s: 1}",
        )
        training = launched.training
        training.wait_step(0, new=3)
        assert len(list(Path(sockets).iterdir())) == 2, "the connections that were there are used"
        os.kill(launched.ranks("b")[0], signal.SIGKILL)
        training.wait_step(1, new=2)
        hosts.hpc("cancel", str(training.run.path))
        assert launched.end() == 12
        for address in addresses[:2]:
            hosts.ssh("-O", "exit", address)
    first, second = training.status()["attempts"]
    assert first["nodes"] == second["nodes"] == ["fd77::1", "fd77::2"]
    assert (first["outcome"], first["node"]) == ("node_failure", "fd77::2")
    assert "rank 1 on fd77::2 was killed by SIGKILL" in first["reason"]
    assert (second["outcome"], second["steps_lost"]) == ("cancelled", 0)
    assert "preflight: go: 2 nodes over TCP" in launched.said()


def test_a_script_runs_on_one_host_from_a_snapshot_and_in_a_container(hosts: Hosts) -> None:
    """The container is a stand-in, as in tests/e2e/test_container.py."""
    project = hosts.shared / "project"
    project.mkdir()
    shutil.copy(STAND_IN, project / "apptainer")
    image_in(project)
    script = project / "train me.py"
    script.write_text(
        "import os, sys\n"
        "import pytorch_lightning as pl\n"
        "from pytorch_lightning.demos.boring_classes import BoringModel\n"
        "print('arguments', sys.argv[1:])\n"
        "print('inside', os.environ['APPTAINER_CONTAINER'], 'in', os.getcwd())\n"
        "pl.Trainer(max_steps=3, accelerator='cpu', logger=False,"
        " enable_checkpointing=False).fit(BoringModel())\n"
    )
    git(project, "init", "-q")
    git(project, "add", ".")
    words = ["launch", "--hosts", "root@c", script.name, "script.accelerator=cpu", "snapshot=git"]
    words += ["container.image=image.sif", f"container.python={sys.executable}"]
    words += [f"env.setup=['export PATH={project}:$PATH']"]
    done = hosts.hpc(
        *words,
        *(f"runs_dir={hosts.runs}", "preflight=off", "--", "--lr", "0.1 $(x)'\"\n"),
        cwd=project,
    )
    assert "arguments ['--lr', '0.1 $(x)\\'\"\\n']" in done.stdout
    assert "completed" in done.stderr
    (run,) = hosts.runs.glob("train*/*")
    assert f"inside {project / 'image.sif'} in {run / 'snapshot'}" in done.stdout


@pytest.mark.parametrize(
    ("launcher", "script"), [("torchrun", "plain_ddp.py"), ("none", "spawned.py")]
)
def test_a_script_with_one_process_a_host_has_the_ranks_of_both(
    hosts: Hosts, launcher: str, script: str
) -> None:
    project = hosts.shared / "project"
    project.mkdir()
    shutil.copy(Path(__file__).parents[1] / "scripts" / script, project)
    words = ["launch", "--hosts", "root@a,b", "--gpus", "2", script, f"runs_dir={hosts.runs}"]
    words += ["script.accelerator=cpu", f"script.launcher={launcher}", "preflight=off"]
    done = hosts.hpc(*words, "--", "--steps", "6", cwd=project)
    assert "completed" in done.stderr, done
    (run,) = hosts.runs.glob("*/*")
    beats = read_heartbeats(RunDir(run).attempt(0))
    seen = [(beat.rank, beat.node, beat.step) for beat in beats]
    assert seen == [(0, "a", 6), (1, "a", 6), (2, "b", 6), (3, "b", 6)]


def test_one_of_the_hosts_may_be_the_machine_that_launches(hosts: Hosts) -> None:
    words = hosts.words("b,a", "global_batch_size=4", "trainer.max_steps=4")
    done = subprocess.run(
        [*hosts.cluster.node_argv("node1"), sys.executable, "-m", "hpc_train.cli", *words],
        env=hosts.env(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done
    assert "preflight: go: 2 nodes over TCP" in done.stdout
    (run,) = hosts.runs.glob("*/*")
    beats = read_heartbeats(RunDir(run).attempt(0))
    assert [(beat.rank, beat.node, beat.step) for beat in beats] == [(0, "b", 4), (1, "a", 4)]


@pytest.mark.parametrize("ipv6", [False, True])
def test_machines_joined_by_hand_train_as_one(hosts: Hosts, ipv6: bool) -> None:
    """What `render --launcher env` prints, typed on two machines; there is no sshd in it."""
    words = (
        "global_batch_size=4",
        "trainer.max_steps=4",
        f"runs_dir={hosts.runs}",
        "preflight=off",
    )
    first = hosts.cluster.address("node1")
    if ipv6:
        first = f"[{hosts.name_by_ipv6({'a': 'fd77::1', 'b': 'fd77::2'})[0]}]"
    lines = hosts.hpc(
        *("render", "--launcher", "env", "--hosts", "a,b", "--master", f"{first}:29511"),
        *(str(CONFIG), *words),
    ).stdout.splitlines()
    python = f"{sys.executable} -m hpc_train.cli "
    processes = [
        subprocess.Popen(
            [
                *hosts.cluster.node_argv(node),
                "sh",
                "-c",
                re.sub(r"(?<!\S)hpc-train ", python, line),
            ],
            env=hosts.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node, line in zip(("node1", "node2"), lines[1::2], strict=True)
    ]
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert "2 ranks on node1, node2" in said[0]
    assert "completed" in said[0]
    assert "node 1 of 2" in said[1]
    (run,) = hosts.runs.glob("tiny/*")
    assert json.loads((run / "attempts/0/heartbeat/rank-1.json").read_text())["node"] == "node2"
    assert not list((hosts.runs / ".join").glob("*/*.json"))


def test_a_port_that_is_taken_is_told_before_anybody_waits(hosts: Hosts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = hosts.hpc(
            *("run", "--node-rank", "0", "--nodes", "2", "--master", f"127.0.0.1:{port}"),
            *(str(CONFIG), "global_batch_size=4", f"runs_dir={hosts.runs}"),
            code=3,
        )
    assert f"127.0.0.1:{port}: another process has that port on this machine" in done.stderr
    assert not hosts.runs.exists()
