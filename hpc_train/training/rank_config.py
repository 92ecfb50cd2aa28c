"""One rank of one attempt: who it is, its share of a step, where it saves. Imports no torch."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hpc_train.config.schema import CheckpointConfig
from hpc_train.plan.plan import Batch, Plan
from hpc_train.runs.checkpoints import fit_checkpoints
from hpc_train.runs.layout import RunDir

_RATES = ("lr", "learning_rate", "base_lr", "max_lr")


@dataclass(frozen=True, kw_only=True)
class RankConfig:
    """What Lightning's loops and raw loops alike are told before they begin.

    Attributes:
        seed: Of the order of samples.
        config_hash: Of what makes the result; that of a checkpoint has to be the same.
        reopened_step: Where the run was over, and is made longer; None otherwise.
        is_script: A script makes the Trainer, and decides where its files go.
        fit: Number of this fit among those of a script.
        steps_before: Optimizer steps that the fits before it took.
        rate: Where the config has the learning rate, and what it is; empty where that is not sure.
    """

    run: RunDir
    attempt: int
    rank: int
    world_size: int
    batch: Batch
    seed: int
    config_hash: str
    checkpoint: CheckpointConfig
    reopened_step: int | None = None
    is_script: bool = False
    fit: int = 0
    steps_before: int = 0
    rate: str = ""

    @property
    def checkpoints(self) -> Path:
        """The folder of this fit's checkpoints."""
        return fit_checkpoints(self.run, self.fit)

    @classmethod
    def of_plan(
        cls, plan: Plan, run: RunDir, *, attempt: int, rank: int, world_size: int
    ) -> RankConfig:
        """A rank of a run that has a plan."""
        return cls(
            run=run,
            attempt=attempt,
            rank=rank,
            world_size=world_size,
            batch=plan.batch,
            seed=plan.training.seed,
            config_hash=plan.config_hash,
            checkpoint=plan.checkpoint,
            reopened_step=plan.reopened_step,
            rate=rate_of(vars(plan.training.model)),
        )


def rate_of(model: Mapping[str, Any]) -> str:
    """`model.init_args.lr is 0.1`, of the one that the arguments of a config's model have."""
    found = list(_rates(model, "model"))
    return found[0] if len(found) == 1 else ""


def _rates(values: Mapping[str, Any], key: str) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _rates(value, f"{key}.{name}")
        elif name in _RATES and isinstance(value, int | float):
            yield f"{key}.{name} is {value}"


def installed_versions() -> dict[str, str]:
    """Of what makes a result and what crosses the network, by name; what is absent is left out."""
    versions = {"python": platform.python_version()}
    for name in ("torch", "pytorch-lightning", "lightning", "hpc-train"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
