"""Where a session of a raw loop runs: its run directory, its ranks, its attempt."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.distributed as dist

from hpc_train.config.hosts import bracketed
from hpc_train.config.schema import CheckpointConfig
from hpc_train.errors import ConfigError
from hpc_train.plan import env_names
from hpc_train.plan.plan import Shape
from hpc_train.plan.shape import split_batch
from hpc_train.plan.world import World
from hpc_train.runs.layout import RunDir
from hpc_train.training.rank_config import RankConfig


def find_run(environ: Mapping[str, str], run_dir: str | Path | None) -> RunDir:
    """The run directory that hpc-train names, else `run_dir`.

    Raises:
        ConfigError: there is neither.
    """
    folder = environ.get(env_names.RUN_DIR) or run_dir
    if folder is None:
        raise ConfigError(
            "this session has no run directory",
            "give Session.open a run_dir, or start the script by hpc-train",
        )
    return RunDir(Path(folder).absolute())


def join_run(
    run: RunDir,
    environ: Mapping[str, str],
    *,
    global_batch_size: int,
    micro_batch_size: int | None,
    seed: int,
    checkpoint: CheckpointConfig,
) -> RankConfig:
    """Meet the other ranks, unless that has been done, and find out what this one is to do.

    Raises:
        CheckError: the ranks cannot share the global batch.
    """
    world = World.from_env(environ)
    _meet(world)
    shape = Shape(world.nodes, world.ranks_per_node, 0)
    return RankConfig(
        run=run,
        rank=world.rank,
        world_size=world.world_size,
        batch=split_batch(global_batch_size, micro_batch_size, shape),
        seed=seed,
        attempt=_attempt(environ, run, world),
        config_hash=hashlib.sha256(f"{global_batch_size} {seed}".encode()).hexdigest()[:12],
        checkpoint=checkpoint,
    )


def _meet(world: World) -> None:
    if world.world_size == 1 or dist.is_initialized():
        return
    dist.init_process_group(
        "nccl" if torch.cuda.is_available() else "gloo",
        init_method=f"tcp://{bracketed(world.master_addr)}:{world.master_port}",
        rank=world.rank,
        world_size=world.world_size,
    )


def _attempt(environ: Mapping[str, str], run: RunDir, world: World) -> int:
    """The number hpc-train gave, or without it the next free one, chosen by rank 0."""
    if env_names.ATTEMPT in environ:
        return int(environ[env_names.ATTEMPT])
    number = [0]
    if world.rank == 0:
        run.stop.unlink(missing_ok=True)  # it was meant for the attempt before
        taken = [int(path.name) for path in run.attempts.glob("*") if path.name.isdigit()]
        number = [max(taken, default=-1) + 1]
        run.attempt(number[0]).path.mkdir(parents=True)
    if world.world_size > 1:
        dist.broadcast_object_list(number, src=0)
    return number[0]
