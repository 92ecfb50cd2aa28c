"""Starts real ranks on this machine, as torchrun would: one process each, gloo between them."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from hpc_train.config.schema import (
    CheckpointConfig,
    PreflightConfig,
    RequeueConfig,
    WatchdogConfig,
)
from hpc_train.plan import env_names
from hpc_train.plan.payload import payload_of
from hpc_train.plan.plan import Batch, ObjectSpec, Plan, Shape, ShellPlan, SlurmPlan, Training
from hpc_train.plan.world import Launcher, World
from hpc_train.runs.layout import AttemptDir, RunDir
from tests.training.forked import start_module

DIGITS = ObjectSpec("hpc_train.examples.digits.DigitsClassifier", {"width": 8})
DIGITS_DATA = ObjectSpec("hpc_train.examples.digits.DigitsData", {})


def make_plan(
    workdir: Path,
    *,
    nodes: int = 1,
    ranks_per_node: int = 2,
    model: ObjectSpec = DIGITS,
    data: ObjectSpec = DIGITS_DATA,
    trainer: Mapping[str, Any] | None = None,
    global_batch_size: int = 64,
    accumulate: int = 1,
    gpus_per_node: int = 0,
    start_timeout_s: float = 60.0,
    loggers: Sequence[Any] = ("csv",),
    reproducible: bool = True,
) -> Plan:
    ranks = nodes * ranks_per_node
    return Plan(
        name="test",
        workdir=str(workdir),
        runs_dir=str(workdir / "runs"),
        config_hash="0" * 16,
        shape=Shape(nodes=nodes, ranks_per_node=ranks_per_node, gpus_per_node=gpus_per_node),
        batch=Batch(global_batch_size, global_batch_size // ranks // accumulate, accumulate),
        training=Training(
            model=model,
            data=data,
            trainer={"accelerator": "cpu", "max_epochs": 1, **(trainer or {})},
            loggers=list(loggers),
            seed=1,
            reproducible=reproducible,
        ),
        slurm=SlurmPlan(options=[], cpus_per_rank=None, signal_lead_s=120),
        shell=ShellPlan(setup=[], variables={}, passthrough=[], python=sys.executable),
        checkpoint=CheckpointConfig(),
        requeue=RequeueConfig(),
        watchdog=WatchdogConfig(start_timeout_s=start_timeout_s),
        preflight=PreflightConfig(mode="off"),
    )


def make_world(
    nodes: int = 3,
    per_node: int = 4,
    rank: int = 0,
    *,
    address: str = "127.0.0.1",
    port: int = 1,
    launcher: Launcher = "slurm",
) -> World:
    """What `World.from_env` gives rank `rank` of `nodes` x `per_node`."""
    return World(
        nodes=nodes,
        ranks_per_node=per_node,
        world_size=nodes * per_node,
        rank=rank,
        local_rank=rank % per_node,
        node_rank=rank // per_node,
        master_addr=address,
        master_port=port,
        devices_visible=None,
        launcher=launcher,
    )


def free_port() -> int:
    """Free now, and outside the range from which connections draw theirs.

    From the system's own source: tests seed `random`, and two workers would draw the same ports.
    """
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def rank_environ(plan: Plan, run: RunDir, rank: int, port: int, attempt: int = 0) -> dict[str, str]:
    shape = plan.shape
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "CUDA_"))}
    return {
        **inherited,
        env_names.RUN_DIR: str(run.path),
        env_names.ATTEMPT: str(attempt),
        env_names.MASTER_ADDR: "127.0.0.1",
        env_names.MASTER_PORT: str(port),
        env_names.RANK_LOG_DIR: str(run.attempt(attempt).path),
        "RANK": str(rank),
        "WORLD_SIZE": str(shape.world_size),
        "LOCAL_RANK": str(rank % shape.ranks_per_node),
        "LOCAL_WORLD_SIZE": str(shape.ranks_per_node),
        "GROUP_RANK": str(rank // shape.ranks_per_node),
    }


@dataclass(frozen=True)
class Ended:
    """Ranks that are gone: exit codes by rank (None = was not started), and their files."""

    codes: list[int | None]
    attempt: AttemptDir

    def log(self, rank: int) -> str:
        return self.attempt.rank_log(rank).read_text(encoding="utf-8")


def _start_fresh(argv: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, env=environment)


def _end(process: subprocess.Popen[bytes] | BaseProcess, timeout_s: float) -> int | None:
    if isinstance(process, subprocess.Popen):
        return process.wait(timeout_s)
    process.join(timeout_s)
    assert process.exitcode is not None, f"a rank still runs after {timeout_s:g} s"
    return process.exitcode


def run_ranks(
    plan: Plan,
    folder: Path,
    *,
    leave_out: Sequence[int] = (),
    environ: Mapping[str, str] | None = None,
    attempt: int = 0,
    timeout_s: float = 300.0,
    forked: bool = True,
) -> Ended:
    """Run all ranks of `plan` to their end in the run directory `folder`.

    Args:
        forked: Off a process that has imported torch and pytorch_lightning already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = RunDir(folder)
    run.plan.write_text(plan.to_json())
    port = free_port()
    argv = payload_of(plan).rank_argv()
    started: dict[int, subprocess.Popen[bytes] | BaseProcess] = {}
    try:
        for rank in range(plan.shape.world_size):
            if rank not in leave_out:
                own = {**rank_environ(plan, run, rank, port, attempt), **(environ or {})}
                how = start_module if forked else _start_fresh
                started[rank] = how(argv, own)
        ended = {rank: _end(process, timeout_s) for rank, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
            _end(process, timeout_s)
    codes = [ended.get(rank) for rank in range(plan.shape.world_size)]
    return Ended(codes=codes, attempt=run.attempt(attempt))
