"""The installed command, called as a user calls it, against the real Slurm or this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hpc_train.runs.events import read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_heartbeats
from tests.cluster.cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "configs" / "digits.yaml"


@dataclass
class Shell:
    """A folder, an environment, and the command in them."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(
        self, *argv: object, code: int | None = 0, timeout_s: float = 400
    ) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in argv]
        done = subprocess.run(
            words,
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert code is None or done.returncode == code, (words, done)
        return done

    def hpc(self, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "hpc_train.cli", *words, **options)

    def submit(self, *words: object, **options: Any) -> dict[str, Any]:
        return dict(json.loads(self.hpc("submit", "--json", *words, **options).stdout))

    def status(self, run: str) -> dict[str, Any]:
        return dict(json.loads(self.hpc("status", run, "--json").stdout))

    def wait_until(
        self, run: str, wanted: Callable[[dict[str, Any]], bool], timeout_s: float = 200
    ) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        while not wanted(status := self.status(run)):
            assert time.monotonic() < deadline, status
            # A command takes a quarter of a second of a core: the next when there is news to tell.
            self._wait_for_news(RunDir(Path(status["run_dir"])), len(status["attempts"]) - 1)
        return status

    @staticmethod
    def _wait_for_news(run: RunDir, attempt: int, timeout_s: float = 5) -> None:
        def seen() -> tuple[int, int]:
            beats = read_heartbeats(run.attempt(attempt)) if attempt >= 0 else []
            return len(read_events(run.events)), max((beat.step for beat in beats), default=0) // 10

        before, deadline = seen(), time.monotonic() + timeout_s
        while seen() == before and time.monotonic() < deadline:
            time.sleep(0.1)

    def ended(self, run: str, timeout_s: float = 200) -> dict[str, Any]:
        over = ("completed", "failed", "cancelled", "timed_out", "lost")
        return self.wait_until(run, lambda status: status["state"] in over, timeout_s)


@pytest.fixture
def here(tmp_path: Path) -> Shell:
    """This machine, without any Slurm."""
    return Shell(tmp_path, {"XDG_STATE_HOME": str(tmp_path / "state"), "SLURM_CONF": ""})


@pytest.fixture
def site(tmp_path: Path, slurm_cluster: Cluster) -> Shell:
    """The login node of the default cluster."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    return Shell(tmp_path, {**slurm_cluster.env(), **state})
