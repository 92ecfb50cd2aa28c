"""What is typed about hosts, and what is said of them; nothing is started."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train import api
from hpc_train.config.hosts import Host, read_hosts
from hpc_train.errors import CheckError, ConfigError
from hpc_train.plan.plan import Plan
from hpc_train.ssh.check_hosts import judge_host
from hpc_train.ssh.connect import forwarded, opening, ssh_argv, why_not
from tests.cli.conftest import DIGITS

SEEN = {"token": "t", "version": hpc_train.__version__, "torch": True, "gpus": 4, "machine": "m"}


def plan_of(*overrides: str, **flags: Any) -> Plan:
    return api.plan(hpc_train.load(DIGITS, *overrides, **flags))


def test_names_users_and_ports_are_read_and_reach_ssh_as_words_of_their_own() -> None:
    hosts = read_hosts(["a", "me@b.example.org", "c:2222", "[fd00::1]", "me@[FD00::02]:22"])
    assert hosts[:3] == [Host("a"), Host("b.example.org", "me"), Host("c", "", 2222)]
    assert hosts[3:] == [Host("fd00::1"), Host("fd00::2", "me", 22)]
    assert ssh_argv(hosts[4])[-6:] == ["-l", "me", "-p", "22", "fd00::2", "bash -s"]
    assert ssh_argv(hosts[1])[-4:] == ["-l", "me", "b.example.org", "bash -s"]
    assert ssh_argv(hosts[2])[-4:] == ["-p", "2222", "c", "bash -s"]
    assert "-oBatchMode=yes" in ssh_argv(hosts[0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-oProxyCommand=x", "'-oProxyCommand=x' is no host"),
        ("a;reboot", "'a;reboot' is no host"),
        ("-l@a", "'-l@a' is no host"),
        ("a:70000", "'a:70000' is no host"),
        ("node[1-3]", "one by one"),
        ("fd00::1", "as [fd00::1]"),
        ("[fd00::1%eth0]", "is no host"),
        ("[a]", "is no host"),
        ("[10.0.0.1]", "is no host"),
        ("[fd00::1]:0", "is no host"),
        ("", "hosts.1 is empty"),
    ],
)
def test_what_is_no_host_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match="hosts") as caught:
        plan_of(nodes=2, hosts=["a", text])
    assert said in caught.value.message


def test_a_host_given_twice_and_too_few_hosts_are_refused() -> None:
    with pytest.raises(ConfigError, match="a is there twice"):
        plan_of(nodes=2, hosts=["a", "me@a:2222"])
    with pytest.raises(ConfigError, match="fd00::1 is there twice"):
        plan_of(nodes=2, hosts=["[fd00::1]", "[fd00:0::1]:2222"])
    with pytest.raises(ConfigError, match=r"names 2, and slurm\.nodes is 3"):
        plan_of(nodes=3, hosts=["a", "b"])


@pytest.mark.parametrize(
    ("words", "why", "fix"),
    [
        ("Host key verification failed.", "its host key is not known", "`ssh -p 22 me@b` once"),
        ("ssh: connect to host b port 22: Connection refused", "nothing there listens", "b:PORT"),
        ("/usr/bin/python3: No module named hpc_train", "has no hpc-train", "env.venv"),
        ("bash: line 9: exec: /x/python: cannot execute: No such file", "no /x/python", "env."),
        ("hpc-train: no folder /work", "there is no folder /work", "shared file system"),
        ("hpc-train: conda activate failed", "conda activate failed", "ssh -p 22 me@b"),
    ],
)
def test_the_words_of_ssh_and_of_bash_are_explained(words: str, why: str, fix: str) -> None:
    said, hint = why_not(Host("b", "me", 22), "/x/python", f"a banner\n{words}\n")
    assert why in said
    assert fix in hint


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        ({"token": ""}, "does not see the runs of this machine"),
        ({"version": "0.0.1"}, "its hpc-train is 0.0.1"),
        ({"torch": False}, "has no torch"),
        ({"gpus": 2}, "it has 2 GPUs, and slurm.gpus_per_node is 4 .every host .*--gpus 2"),
        ({"gpus": 0}, "it has 0 GPUs"),
    ],
)
def test_a_host_that_lacks_something_is_refused(differs: dict[str, Any], said: str) -> None:
    plan = plan_of("trainer.accelerator=gpu", nodes=2, gpus=4, hosts=["a", "b"])
    assert judge_host(Host("b"), SEEN, plan, "t") == []
    (note,) = judge_host(Host("b"), {**SEEN, "gpus": 8}, plan, "t")
    assert "host b has 8 GPUs, of which 4 are used" in note
    with pytest.raises(CheckError, match=f"host b: .*{said}"):
        judge_host(Host("b"), {**SEEN, **differs}, plan, "t")


def test_of_the_environment_a_host_gets_what_is_meant_for_the_ranks() -> None:
    plan = plan_of("env.passthrough=[WANDB_API_KEY]", nodes=1, hosts=["a"])
    environ = {"HOME": "/root", "WANDB_API_KEY": "s'x", "NCCL_DEBUG": "INFO", "SSH_AUTH_SOCK": "/"}
    given = forwarded(environ, plan)
    assert given == {"WANDB_API_KEY": "s'x", "NCCL_DEBUG": "INFO"}
    assert "export WANDB_API_KEY='s'\"'\"'x'\n" in opening(plan, given)
    assert "s'x" not in " ".join(ssh_argv(Host("a")))


def test_lines_for_each_machine_are_quoted(hpc: Any, tmp_path: Path) -> None:
    script = tmp_path / "my train.py"
    script.write_text("import pytorch_lightning\n")
    words = ("--hosts", "a,me@b:22", "--gpus", "2", str(script), "--", "--lr", "0.1 $(x)")
    said = hpc("render", "--launcher", "env", *words)
    lines = said.out.splitlines()
    assert said.code == 0
    assert lines[::2] == ["# on a", "# on b"]
    place = ["MASTER_ADDR=a", "MASTER_PORT=29500", "NNODES=2", "NODE_RANK=1"]
    run = ["hpc-train", "run", str(script), "--nodes=2", "--gpus=2", "--", "--lr", "0.1 $(x)"]
    assert shlex.split(lines[3]) == ["cd", str(tmp_path), "&&", *place, *run]
    said = hpc("render", "--launcher", "torchrun", "--master", "10.0.0.1:4000", *words)
    assert shlex.split(said.out.splitlines()[1])[3:] == [
        *("torchrun", "--nnodes=2", "--nproc-per-node=2", "--node-rank=0"),
        *("--master-addr=10.0.0.1", "--master-port=4000", str(script), "--lr", "0.1 $(x)"),
    ]
    assert (
        "torchrun starts scripts" in hpc("render", "--launcher", "torchrun", *words[:4], DIGITS).err
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("launch", DIGITS), 2, "no hosts are named"),
        (("launch", "--hosts", "a,a", DIGITS), 3, "a is there twice"),
        (("launch", "--hosts", "a,b", "--nodes", "3", DIGITS), 3, "names 2"),
        (("submit", "--cluster", "slurm", DIGITS, "slurm.nodes=1", "hosts=[a]"), 3, "over ssh"),
        (("render", "--launcher", "env", DIGITS), 2, "--launcher needs the machines"),
        (("run", "--node-rank", "1", DIGITS), 2, "belong together"),
        (("run", "--node-rank", "2", "--nodes", "2", "--master", "a:1", DIGITS), 2, "0 to 1"),
        (("run", "--node-rank", "0", "--nodes", "2", "--master", "a", DIGITS), 2, "HOST:PORT"),
        (
            ("run", "--node-rank", "0", "--nodes", "2", "--master", "192.0.2.1:999", DIGITS),
            3,
            "no address",
        ),
    ],
)
def test_bad_input_is_one_line_and_a_fix(
    hpc: Any, words: tuple[str, ...], code: int, said: str
) -> None:
    told = hpc(*words)
    assert told.code == code, told
    error, fix = told.err.splitlines()
    assert error.startswith("error: ")
    assert said in told.err
    assert fix.startswith("  fix: ")


def test_the_plan_of_a_run_keeps_its_hosts() -> None:
    plan = plan_of(nodes=1, hosts=["a", "b"])
    assert Plan.from_json(plan.to_json()) == plan
    assert '"hosts"' not in dataclasses.replace(plan, hosts=[]).to_json()
