"""What is refused before anything is started on any host: one line and the fix each."""

from __future__ import annotations

import contextlib
import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hpc_train
from hpc_train import api
from hpc_train.errors import CheckError
from hpc_train.ssh.check_hosts import check_hosts
from tests.cluster import Cluster
from tests.faults.running import CONFIG, ROOT
from tests.ssh.hosts import Hosts

pytestmark = pytest.mark.slurm


@pytest.fixture
def hosts(
    slurm_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hosts]:
    """Three hosts, and this process is the shell in which one types."""
    hosts = Hosts(slurm_cluster, tmp_path / "ssh")
    for name, value in hosts.env().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ROOT)
    yield hosts
    assert not hosts.runs.exists(), "something was made though nothing was started"


def refusal(hosts: Hosts, named: str, *overrides: str) -> str:
    """Message and fix."""
    names = named.split(",")
    loaded = hpc_train.load(
        CONFIG, f"runs_dir={hosts.runs}", *overrides, nodes=len(names), hosts=names
    )
    with pytest.raises(CheckError) as caught:
        check_hosts(api.plan(loaded), os.environ)
    assert "\n" not in f"{caught.value}"
    return f"{caught.value.message}; fix: {caught.value.hint}"


def test_a_host_that_ssh_does_not_reach_is_named_with_what_to_do(hosts: Hosts) -> None:
    nowhere = hosts.cluster.address("node1").rpartition(".")[0] + ".99"
    hosts.write_config("Host gone", f"  HostName {nowhere}")
    said = refusal(hosts, "a,gone,b")
    assert said.startswith("host gone: it does not answer")
    assert "`ssh gone true`" in said
    said = refusal(hosts, "a,b:2222")
    assert said.startswith("host b: nothing there listens for ssh")
    assert "host zz.invalid: no such host is known here" in refusal(hosts, "zz.invalid,a")
    said = refusal(hosts, "a,stranger@c")
    assert said.startswith("host c: it lets nobody in as stranger without a password")
    assert "`ssh-copy-id stranger@c`" in said


def test_host_keys_are_respected(hosts: Hosts) -> None:
    known = hosts.folder / "known_hosts"
    address = hosts.cluster.address("node2")
    before = known.read_text()
    known.write_text("".join(line for line in before.splitlines(True) if address not in line))
    said = refusal(hosts, "a,b")
    assert said.startswith("host b: its host key is not known here")
    assert "`ssh b` once" in said
    assert address not in known.read_text(), "a key was taken without a question"
    other = (hosts.folder / "user_key.pub").read_text().split()[1]
    known.write_text(before.replace(before.split()[2], other))
    assert "host b: its host key is not the one that is known here" in refusal(hosts, "b,a")


def test_nothing_is_asked_at_the_terminal_about_a_jump_host(hosts: Hosts) -> None:
    """ssh hands BatchMode to no jump host, and asks at the terminal, not at standard input."""
    hosts.write_config("Host behind", f"  HostName {hosts.cluster.address('node2')}",
                       "  ProxyJump c")  # fmt: skip
    known = hosts.folder / "known_hosts"
    address = hosts.cluster.address("node3")
    lines = known.read_text().splitlines(True)
    known.write_text("".join(line for line in lines if address not in line))
    process, terminal = pty.fork()
    if process == 0:
        words = [sys.executable, "-m", "hpc_train.cli", *hosts.words("behind,a")]
        os.execve(sys.executable, words, hosts.env())
    said = b""
    with contextlib.suppress(OSError):  # EIO: the command has ended
        while part := os.read(terminal, 4096):
            said += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 3
    assert b"host behind: its host key is not known here" in said
    assert b"yes/no" not in said


def test_a_host_without_what_the_ranks_need_is_named(hosts: Hosts) -> None:
    # The user's own lines choose the Python of the hosts: here one that has no torch.
    bare = hosts.folder / "bare" / "bin"
    bare.mkdir(parents=True)
    (bare / "python").symlink_to("/usr/bin/python3")
    setup = f"env.setup=['export PATH={bare}:$PATH # activate']"
    said = refusal(hosts, "a,b", setup)
    assert said.startswith("host a: its Python (python) has no torch")
    # Another Python is on this machine than on the host.
    away = hosts.folder / "elsewhere"
    said = refusal(hosts, "b,a", f"env.setup=['PATH={away} # activate']")
    assert said.startswith("host b: there is no python")
    said = refusal(hosts, "b,a", "env.setup=['echo no licence >&2; exit 7']")
    assert said.startswith("host b: nothing can be started there: no licence")


def test_folders_that_the_hosts_do_not_share_are_told(hosts: Hosts) -> None:
    shared = str(hosts.shared)
    hosts.cluster.node_exec("node2", ["mount", "-t", "tmpfs", "none", shared])
    hosts.cluster.on_reset(lambda: hosts.cluster.node_exec("node2", ["umount", shared]))
    said = refusal(hosts, "a,b,c")
    assert said.startswith(f"host b: it does not see the runs of this machine in {hosts.runs}")
    assert "runs_dir" in said


def test_the_same_machine_by_two_names_is_refused(hosts: Hosts) -> None:
    hosts.write_config("Host again", f"  HostName {hosts.cluster.address('node1')}")
    assert "host again: it is the same machine as a" in refusal(hosts, "a,again")


def test_a_person_reads_it_in_one_line_and_a_fix(hosts: Hosts) -> None:
    done = hosts.hpc(*hosts.words("a,stranger@b"), code=3)
    error, fix = done.stderr.splitlines()
    assert error.startswith("error: host b: it lets nobody in as stranger")
    assert fix.startswith("  fix: ")
    assert done.stdout == ""
