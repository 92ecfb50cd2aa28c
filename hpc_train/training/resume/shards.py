"""Sharded states (FSDP2's DTensors) of raw loops, through torch.distributed.checkpoint.

Every rank writes its part; a run that goes on with another number of ranks reads what it needs of
all parts. Lightning's own sharded strategies do the same by themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.tensor import DTensor


def is_sharded(model: torch.nn.Module) -> bool:
    """Whether a rank holds only a part of `model`."""
    return any(isinstance(parameter, DTensor) for parameter in model.parameters())


def _state(model: torch.nn.Module, optimizers: dict[str, torch.optim.Optimizer]) -> dict[str, Any]:
    # By parameter names: an optimizer's own state_dict counts parameters, and cannot be resharded.
    return {
        "model": get_model_state_dict(model),
        **{name: get_optimizer_state_dict(model, item) for name, item in optimizers.items()},
    }


def save_shards(
    model: torch.nn.Module,
    optimizers: dict[str, torch.optim.Optimizer],
    folder: Path,
    group: dist.ProcessGroup | None,
) -> None:
    """Write this rank's part into `folder`. Collective.

    Raises:
        CheckpointException: some rank could not write, on all ranks; no Exception, by its base.
    """
    folder.mkdir(parents=True, exist_ok=True)
    save(_state(model, optimizers), checkpoint_id=folder, process_group=group)


def load_shards(
    model: torch.nn.Module,
    optimizers: dict[str, torch.optim.Optimizer],
    folder: Path,
    group: dist.ProcessGroup | None,
) -> None:
    """Read this rank's part into `model` and `optimizers`, from parts of any number of ranks."""
    state = _state(model, optimizers)
    load(state, checkpoint_id=folder, process_group=group)
    set_model_state_dict(model, state["model"])
    for name, optimizer in optimizers.items():
        set_optimizer_state_dict(model, optimizer, state[name])
