"""One attempt on made nodes, whose ranks and whose Slurm are told what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.config.schema import PreflightConfig
from hpc_train.plan.from_config import make_plan
from hpc_train.runs.events import read_events
from hpc_train.runs.history import AttemptRecord, attempts_in
from hpc_train.runs.layout import RunDir, checkpoint_name
from hpc_train.runs.ranks import (
    ExitRecord,
    Heartbeat,
    write_exit,
    write_heartbeat,
)
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.attempt import Attempt, AttemptResult, new_attempt
from hpc_train.supervisor.signals import SupervisorSignals
from hpc_train.supervisor.supervisor_log import SupervisorLog
from tests.plan.configs import config

from .programs import Slurm

NODES = ("n1", "n2")

RUNNING = "JobState=RUNNING Requeue=1 Restarts=0 PreemptTime=None"


class Scene:
    """An attempt on two nodes of a Slurm whose programs are made here."""

    def __init__(self, folder: Path, slurm: Slurm, *, there: int, gone: int) -> None:
        self.slurm = slurm
        self.run = RunDir(folder / "run")
        self.run.path.mkdir()
        self.ports = {"n1": there, "n2": there}
        self.gone = gone
        self.job = RUNNING
        self.signals = SupervisorSignals()
        self.allocation = Allocation(backend="slurm", job_id="7", nodes=NODES)
        made = config(slurm={"gpus_per_node": 1}, preflight=PreflightConfig(monitor_interval_s=0))
        self.plan = make_plan(made, workdir=str(folder), python="python3")
        self.environ = {"PATH": slurm.path}

    def attempt(self) -> Attempt:
        return new_attempt(
            self.plan, self.allocation, self.run, self.environ, self.signals, SupervisorLog()
        )

    def carry_out(self, attempt: Attempt, launcher: str) -> AttemptResult:
        """Carry it out where srun is this script."""
        rows = "".join(
            f'echo "NodeName={name} NodeAddr=127.0.0.1 Port={port}"\n'
            for name, port in self.ports.items()
        )
        self.slurm.does(
            "scontrol",
            f'case "$*" in\n*"show job"*) echo "{self.job}" ;;\n"show node"*)\n{rows};;\nesac',
        )
        self.slurm.does("srun", launcher)
        return attempt.carry_out(NODES, {}, {})

    def ended(self) -> AttemptRecord:
        return attempts_in(read_events(self.run.events))[-1]

    def save(self, step: int) -> None:
        folder = self.run.checkpoints / checkpoint_name(step)
        folder.mkdir(parents=True)
        (folder / "manifest.json").touch()

    @property
    def asked_for_nodes(self) -> bool:
        return any("show node" in line for line in self.slurm.asked("scontrol"))

    @property
    def asked_for_job(self) -> bool:
        return any("show job" in line for line in self.slurm.asked("scontrol"))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    slurm = Slurm(tmp_path)
    monkeypatch.setenv("PATH", slurm.path)
    with socket.create_server(("127.0.0.1", 0)) as there, socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        yield Scene(tmp_path, slurm, there=there.getsockname()[1], gone=gone.getsockname()[1])


def beat(attempt: Attempt, step: int, rank: int = 0) -> None:
    known = {"node": NODES[rank], "pid": 1, "time": 1.0, "moved": 1.0, "phase": "train"}
    write_heartbeat(attempt.folder, Heartbeat(rank=rank, step=step, **known))  # type: ignore[arg-type]


def say(attempt: Attempt, rank: int, code: int, **more: object) -> None:
    known = {"node": NODES[rank], "time": float(rank), **more}
    write_exit(attempt.folder, ExitRecord(rank=rank, code=code, **known))  # type: ignore[arg-type]
