"""Machines without a scheduler: the namespaces of the test cluster, with a real sshd in each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.cluster import Cluster
from tests.cluster.faults import find
from tests.cluster.nodes import entering
from tests.cluster.shell import run, wait_until
from tests.faults.running import CONFIG, LEAN, RANK, ROOT, Training

__all__ = ["Hosts", "Launched"]

SSHD_CONFIG = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PidFile none
AcceptEnv none
"""
# The names stand in the user's own file, as aliases do.
SSH_CONFIG = """\
IdentityFile {folder}/user_key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
"""
# ssh reads the home in /etc/passwd, whatever HOME is, so the tests name their file to it.
WRAPPER = '#!/bin/sh\nexec /usr/bin/ssh -F "{folder}/ssh_config" "$@"\n'


@dataclass
class Hosts:
    """Hosts a, b, c: node1, node2, node3 of the cluster."""

    cluster: Cluster
    folder: Path
    names: dict[str, str] = field(default_factory=dict)  # alias -> node
    ipv6: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shared.mkdir(parents=True)
        for key in ("host_key", "user_key"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key)])
        (self.folder / "sshd_config").write_text(SSHD_CONFIG.format(folder=self.folder))
        (self.folder / "bin").mkdir()
        wrapper = self.folder / "bin" / "ssh"
        wrapper.write_text(WRAPPER.format(folder=self.folder))
        wrapper.chmod(0o755)
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.names.update(zip("abc", self.cluster.nodes, strict=False))
        self.write_config()
        for node in self.cluster.nodes:
            self.start_sshd(node)

    def write_config(self, *more: str) -> None:
        """The user's ~/.ssh/config and known_hosts."""
        public = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        lines, known = [*more], []
        for alias, node in self.names.items():
            address = self.cluster.address(node)
            lines += [f"Host {alias}", f"  HostName {address}"]
            known.append(f"{address} {public}\n")
            known.append(f"[{address}]:2222 {public}\n")
        known += [f"{address} {public}\n" for address in self.ipv6]
        text = "\n".join([SSH_CONFIG.format(folder=self.folder), *lines, ""])
        (self.folder / "ssh_config").write_text(text)
        (self.folder / "known_hosts").write_text("".join(known))

    def name_by_ipv6(self, addresses: Mapping[str, str]) -> list[str]:
        """Give hosts an address each in a network that this machine is not in."""
        for alias, address in addresses.items():
            node = self.names[alias]
            words = [f"{address}/64", "dev", "eth0", "nodad"]
            self.cluster.node_exec(node, ["ip", "-6", "addr", "add", *words])
            take = ["ip", "-6", "addr", "del", *words[:3]]
            self.cluster.on_reset(partial(self.cluster.node_exec, node, take))
            self.ipv6.append(address)
        return self.ipv6

    def ssh(self, *words: str) -> None:
        """The ssh command, with the user's file."""
        run([str(self.folder / "bin" / "ssh"), *words])

    def start_sshd(self, node: str, port: int = 22) -> None:
        """A real sshd in a node."""
        name = f"sshd-{port}-{node}"
        argv = ["/usr/sbin/sshd", "-D", "-e", "-p", str(port), "-f", f"{self.folder}/sshd_config"]
        anchor = self.cluster.nodes[node].anchor_pid
        self.cluster.processes.start(name, [*entering(anchor), *argv])
        self.cluster.on_reset(lambda: self.cluster.processes.stop(name, signal.SIGKILL))
        ask = [*entering(anchor), "sh", "-c", f"ss -Hltn sport = :{port} | grep -q ."]
        wait_until(lambda: run(ask, check=False).returncode == 0, name, timeout_s=60)

    def env(self) -> dict[str, str]:
        """Of the shell in which one types."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "HPC_TRAIN_"))}
        return {
            **kept,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PYTHONPATH": str(LEAN),
            "SLURM_CONF": "",
            "SSH_AUTH_SOCK": "",
        }

    def hpc(
        self,
        *words: str,
        code: int | None = 0,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
    ) -> subprocess.CompletedProcess[str]:
        """The command, to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "hpc_train.cli", *words],
            env={**self.env(), **(env or {})},
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert code is None or done.returncode == code, (words, done)
        return done

    @property
    def runs(self) -> Path:
        """The folder of all runs."""
        return self.shared / "runs"

    @property
    def shared(self) -> Path:
        """What a host without the shared file system does not see."""
        return self.folder / "shared"

    def words(self, hosts: str, *overrides: str, config: Path = CONFIG) -> list[str]:
        """`launch` of the tiny training."""
        return ["launch", "--hosts", hosts, str(config), f"runs_dir={self.runs}", *overrides]

    def refused(self, hosts: str, *overrides: str) -> str:
        """What a launch says that is refused; nothing of it stays."""
        done = self.hpc(*self.words(hosts, *overrides), code=None)
        assert done.returncode in (2, 3), done
        assert not self.runs.exists(), "something was made though nothing was started"
        lines = done.stderr.splitlines()
        assert [line.split(":")[0].strip() for line in lines] == ["error", "fix"], done.stderr
        return done.stderr

    def launch(self, hosts: str, *overrides: str) -> Launched:
        """A launch in the foreground of another terminal."""
        before, log = self._made(), self.folder / "launch.log"
        with log.open("ab") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "hpc_train.cli", *self.words(hosts, *overrides)],
                env=self.env(),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(
            lambda: self._made() != before or process.poll() is not None,
            "the run's folder",
            timeout_s=300,
        )
        assert self._made() != before, log.read_text()
        newest = max(self.runs.glob("*/*"), key=lambda folder: folder.name)
        return Launched(self, Training.at(self.cluster, newest), process, log)

    def _made(self) -> list[Path]:
        return sorted(self.runs.glob("*/*/events.jsonl"))


@dataclass(frozen=True)
class Launched:
    """A run that was launched."""

    hosts: Hosts
    training: Training
    process: subprocess.Popen[bytes]
    log: Path

    def ranks(self, alias: str) -> list[int]:
        """The ranks on a host."""
        return find(self.hosts.cluster, self.hosts.names[alias], RANK)

    def end(self) -> int:
        """The command's exit code."""
        return self.process.wait(timeout=300)

    def said(self) -> str:
        """What it has printed."""
        return self.log.read_text()
