"""One rank of one attempt: who it is, its share of a step, where it saves. Imports no torch."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version

from hpc_train.config.schema import CheckpointConfig
from hpc_train.plan.plan import Batch, Plan
from hpc_train.runs.layout import RunDir

__all__ = ["RankConfig", "installed_versions"]


@dataclass(frozen=True, kw_only=True)
class RankConfig:
    """What Lightning's loops and raw loops alike are told before they begin.

    Attributes:
        seed: Of the order of samples.
        config_hash: Of what makes the result; that of a checkpoint has to be the same.
    """

    run: RunDir
    attempt: int
    rank: int
    world_size: int
    batch: Batch
    seed: int
    config_hash: str
    checkpoint: CheckpointConfig

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
        )


def installed_versions() -> dict[str, str]:
    """Of what makes a result and what crosses the network, by name."""
    packages = ("torch", "pytorch-lightning", "hpc-train")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
