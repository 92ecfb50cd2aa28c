"""Checkpoints of ranks that are threads here, and what stands in their way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from hpc_train.config.schema import CheckpointConfig
from hpc_train.plan.plan import Batch
from hpc_train.training.faults import RehearsedFaults, parse_faults
from hpc_train.training.resume.checkpoint import list_checkpoints
from hpc_train.training.resume.saving import (
    Saver,
    Snapshot,
)
from tests.training.controlled import rank_config


def saver(
    folder: Path,
    rank: int = 0,
    group: dist.ProcessGroup | None = None,
    *,
    world_size: int = 2,
    faults: str = "",
    **config: Any,
) -> Saver:
    config_of_rank = rank_config(
        folder,
        rank=rank,
        world_size=world_size if group else 1,
        attempt=3,
        batch=Batch(8, 1, 4),
        config_hash="abc",
        checkpoint=CheckpointConfig(**config),
    )
    made = RehearsedFaults(parse_faults(faults), rank=rank, attempt=3)
    return Saver(config_of_rank, group=group, faults=made)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """The run's folder of checkpoints."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    return folder


def state(step: int, rank: int = 0, weight: torch.Tensor | None = None, **more: Any) -> Snapshot:
    weight = torch.full((4,), float(step)) if weight is None else weight
    fields = {
        "epoch": 2,
        "samples": 10 * step,
        "model": {"state_dict": {"weight": weight}} if rank == 0 else None,
        "own": {"rank": rank},
        "parameters": frozenset({"weight"}),
        **more,
    }
    return Snapshot(step=step, **fields)


def steps(folder: Path) -> list[int]:
    return sorted(found.step for found in list_checkpoints(folder, verify=True) if found.valid)
