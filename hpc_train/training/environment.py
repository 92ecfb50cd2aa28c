"""Tells Lightning what `World` found, so that it looks at no SLURM_* by itself."""

from __future__ import annotations

from hpc_train.training.private.lightning import ClusterEnvironment
from hpc_train.training.world_environment import WorldEnvironment


class HpcEnvironment(WorldEnvironment, ClusterEnvironment):
    """That of a Trainer; a Fabric's has a base of its own package."""
