"""A preflight on the test cluster as its user starts it, and the cluster's made InfiniBand."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster import Cluster, sysfs

__all__ = ["HOOK", "PROBE", "Lab", "Running", "Said", "hooked", "until"]

HOOK = Path(__file__).with_name("hook")
PROBE = r"-m hpc_train\.preflight\.probes\.probe"
GPUS = ("--gpus", "1")
# All nodes share this machine: three times the usual patience. The thresholds are the users'.
PATIENT = ("--budget=60",)
PATIENT_CONFIG = ("preflight.budget_s=60",)


def until(true: Callable[[], Any], what: str, timeout_s: float = 120) -> Any:
    """The first truthy value of `true`."""
    deadline = time.monotonic() + timeout_s
    while not (value := true()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s"
        time.sleep(0.01)
    return value


def unlimited_memlock() -> dict[str, str]:
    """Variables by which made nodes may lock all memory, though this machine may allow 8 MiB."""
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    return {"PYTHONPATH": str(HOOK), "PREFLIGHT_TEST_USUAL_MEMLOCK": str(most)}


def hooked(node: str, fault: str) -> dict[str, str]:
    """Variables that break the probe of one node (`*`: of all), see hook/sitecustomize.py."""
    return {"PYTHONPATH": str(HOOK), "PREFLIGHT_TEST_FAULT": f"{node}:{fault}"}


@dataclass(frozen=True)
class Said:
    """What the command said.

    Attributes:
        code: Its exit code.
        document: Of --json.
        stderr: The talk.
        seconds: From the command's start to its end, Slurm's allocation included.
    """

    code: int
    document: dict[str, Any]
    stderr: str
    seconds: float

    @property
    def verdict(self) -> str:
        return str(self.document["verdict"])

    @property
    def bad(self) -> list[str]:
        return list(self.document["bad_nodes"])

    @property
    def named(self) -> set[str]:
        return {*self.document["bad_nodes"], *self.document["degraded_nodes"]}

    @property
    def environment(self) -> dict[str, str]:
        return {item["name"]: item["value"] for item in self.document["environment"]}

    def reason(self, name: str) -> str:
        (found,) = [i["reason"] for i in self.document["environment"] if i["name"] == name]
        return str(found)

    def findings(self, node: str = "", check: str = "") -> list[dict[str, str]]:
        return [
            item
            for item in self.document["findings"]
            if node in ("", item["node"]) and check in ("", item["check"])
        ]

    def skipped(self) -> dict[str, str]:
        return {item["part"]: item["reason"] for item in self.document["skipped"]}


@dataclass
class Running:
    """A preflight under way."""

    process: subprocess.Popen[str]
    folder: Path
    started: float

    def probes(self) -> Path:
        """The folder in which the probes leave what they see."""
        return until(
            lambda: next(self.folder.glob(".hpc-train-preflight-*"), None), "the probes' folder"
        )

    def wait_for(self, name: str) -> Path:
        path = self.probes() / name
        until(path.exists, name)
        return path

    def said(self, timeout_s: float = 240) -> Said:
        out, err = self.process.communicate(timeout=timeout_s)
        seconds = time.monotonic() - self.started
        assert out.startswith("{"), (self.process.returncode, out, err)
        return Said(self.process.returncode, json.loads(out), err, seconds)


@dataclass
class Lab:
    """The cluster, a folder for what the commands write, and options of every preflight."""

    cluster: Cluster
    folder: Path
    options: tuple[str, ...] = PATIENT
    count: int = field(default=0)

    def outfit(self, hcas: int = 2) -> None:
        """Give every node a healthy InfiniBand that outlives the resets between tests."""
        for number, node in enumerate(self.cluster.nodes, start=1):
            sysfs.set_hcas(self.cluster, node, sysfs.healthy(number, hcas=hcas), keep=True)

    def without_hcas(self, node: str) -> None:
        """Take a node's InfiniBand away until the next reset."""
        number = self.cluster.nodes[node].number
        self.cluster.on_reset(
            lambda: sysfs.set_hcas(self.cluster, node, sysfs.healthy(number), keep=True)
        )
        sysfs.set_hcas(self.cluster, node, ())

    def other_hcas(self, node: str, hcas: tuple[sysfs.Hca, ...]) -> None:
        """Give a node other adapters until the next reset."""
        self.without_hcas(node)
        sysfs.set_hcas(self.cluster, node, hcas, keep=True)

    def port(self, node: str, hca: str, **files: str) -> None:
        """Change files of a port until the next reset."""
        base = self.cluster.layout.node_dir(node) / "class/infiniband" / hca / "ports/1"
        usual = {name: (base / name).read_text().strip() for name in files}
        self.cluster.on_reset(lambda: sysfs.set_port(self.cluster, node, hca, **usual))
        sysfs.set_port(self.cluster, node, hca, **files)

    def unreadable(self, file: Path) -> None:
        """Let reading a file fail until the next reset (root may read what has no permissions)."""
        text = file.read_text()

        def restore() -> None:
            file.rmdir()
            file.write_text(text)

        self.cluster.on_reset(restore)
        file.unlink()
        file.mkdir()

    def environ(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of a user of the cluster."""
        left_out = ("SLURM_", "HPC_TRAIN_", "NCCL_", "GLOO_")
        own = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        return {**own, **self.cluster.env(), **unlimited_memlock(), **(extra or {})}

    def command(
        self, *words: object, env: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """`hpc-train WORDS`."""
        return subprocess.run(
            [sys.executable, "-m", "hpc_train.cli", *map(str, words)],
            cwd=self.folder, env=self.environ(env), capture_output=True, text=True,
            timeout=timeout_s, check=False,
        )  # fmt: skip

    @contextlib.contextmanager
    def start(
        self, *words: object, nodes: int = 3, env: Mapping[str, str] | None = None
    ) -> Iterator[Running]:
        """`hpc-train preflight --nodes N --json WORDS`, going on."""
        self.count += 1
        folder = self.folder / f"run-{self.count}"
        folder.mkdir()
        argv = ["preflight", "--nodes", str(nodes), "--json", *self.options, *map(str, words)]
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "hpc_train.cli", *argv],
            cwd=folder, env=self.environ(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip
        try:
            yield Running(process, folder, started)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def check(self, *words: object, nodes: int = 3, env: Mapping[str, str] | None = None) -> Said:
        """The command from its start to its end."""
        with self.start(*words, nodes=nodes, env=env) as running:
            return running.said()
