"""A config for tests of the plan, with one key changed at a time."""

from __future__ import annotations

from typing import Any

from hpc_train.config.schema import Config, EnvConfig, RequeueConfig, SlurmConfig


def config(
    *,
    slurm: dict[str, Any] | None = None,
    env: dict[str, Any] | None = None,
    **changes: Any,
) -> Config:
    values: dict[str, Any] = {
        "name": "digits",
        "global_batch_size": 96,
        "model": {"class_path": "nets.Net", "init_args": {"width": 8}},
        "data": {"class_path": "nets.Data"},
        "trainer": {"max_epochs": 3},
        "slurm": SlurmConfig(**{"nodes": 2, "gpus_per_node": 4, **(slurm or {})}),
        "env": EnvConfig(**(env or {})),
    }
    return Config(**{**values, **changes})


def no_requeue() -> RequeueConfig:
    return RequeueConfig(enabled=False)
