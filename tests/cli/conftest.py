"""The command line, called in this process, in an empty folder, without any Slurm."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hpc_train.cli.main import main
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "configs" / "digits.yaml")
MINUTE_S = 60.0


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def hpc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    """`hpc("status", "x")` gives exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SLURM_CONF", "SLURM_JOB_ID", "HPC_TRAIN_RUNS_DIR"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> Said:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        out, err = capfd.readouterr()
        code = caught.value.code
        return Said(code if isinstance(code, int) else 0, out, err)

    return call


class Slurm:
    """A squeue that says what it is told to, and counts how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.has("squeue", f"echo >> {folder}/asked\ncat {folder}/says")
        # Debian's own would look for a cluster by name service, for a minute.
        self.has("sacct", "exit 1")
        self.says()

    def has(self, program: str, script: str) -> None:
        """Put a program on the PATH."""
        (self.folder / program).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / program).chmod(0o755)

    def says(self, *lines: str) -> None:
        (self.folder / "says").write_text("".join(f"{line}\n" for line in lines))

    def asked(self) -> int:
        """How often since the last call."""
        log = self.folder / "asked"
        count = len(log.read_text()) if log.exists() else 0
        log.write_text("")
        return count


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    fake = Slurm(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{fake.folder}:/usr/bin:/bin")
    # Debian's own sacct may be installed: without a cluster it fails, as at some sites.
    monkeypatch.setenv("SLURM_CONF", "/nowhere/slurm.conf")
    # A shell may start late where other tests run; what a silent squeue leads to has its own tests.
    monkeypatch.setattr("hpc_train.slurm.jobs.SQUEUE_S", 60.0)
    return fake


@pytest.fixture
def without_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH on which there are no Slurm commands."""
    monkeypatch.setenv("PATH", "/nowhere")


def on_terminal(*words: str, columns: int, **variables: str) -> str:
    """What `hpc-train WORDS` shows on a terminal that is so wide, escapes included."""
    # pytest-xdist tells its workers a width.
    inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "hpc_train.cli", *words],
        env={**inherited, "TERM": "xterm", **variables},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    process.wait()
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def taken(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """A Slurm that takes every job, as its number 7, and sees the tests' folder."""
    monkeypatch.setattr("hpc_train.doctor.examine_folder.MOUNTS", Path("/dev/null"))
    slurm.has("sbatch", "echo Submitted batch job 7")
    for program in ("srun", "scontrol", "sinfo"):
        slurm.has(program, "exit 1")
    return slurm


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunDir]:
    """A run of job NUMBER, made NUMBER minutes after the first; ids sort by time, names do not."""

    def make(number: int, *, ended: bool, run_id: str = "") -> RunDir:
        at = time.time() - 1000 * MINUTE_S + number * MINUTE_S
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(at))
        run = RunDir(tmp_path / "runs" / f"name{number % 3}" / (run_id or f"{stamp}-{number:04x}"))
        run.attempt(0).path.mkdir(parents=True)
        run.plan.write_text("{}")
        os.utime(run.plan, (at, at))
        run.latest.symlink_to("attempts/0")
        tell(run, at, EventKind.SUBMITTED, job_id=str(number), backend="slurm")
        tell(run, at + 1, EventKind.ATTEMPT_STARTED, attempt=0, job_id=str(number))
        if ended:
            end(run, at + 2)
        return run

    return make


def tell(run: RunDir, at: float, kind: EventKind, **data: object) -> None:
    append_event(run.events, Event(at, kind, data))


def end(run: RunDir, at: float) -> None:
    told = {"outcome": "completed", "last_step": 7, "saved_step": 7}
    tell(run, at, EventKind.ATTEMPT_ENDED, attempt=0, **told)
    tell(run, at, EventKind.RUN_ENDED, attempt=0, state="completed", reason="all done")


def beats(run: RunDir, **told: object) -> None:
    beat = {"rank": 0, "node": "n", "pid": 1, "time": 1.0, "moved": 1.0, "phase": "train", **told}
    write_heartbeat(run.attempt(0), Heartbeat(**beat))
