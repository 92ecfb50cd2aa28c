"""The peer: a thousand tasks submitted with submitit's map_array and nothing else."""

from __future__ import annotations

import sys

import submitit


def train(lr: float, seed: int) -> None:
    """What a task would do."""


executor = submitit.AutoExecutor(folder=sys.argv[1], cluster="slurm")
executor.update_parameters(
    name="digits",
    nodes=3,
    tasks_per_node=4,
    timeout_min=30,
    slurm_array_parallelism=8,
    slurm_additional_parameters={"gres": "gpu:4"},
)
pairs = [(lr / 10, seed) for lr in range(10) for seed in range(100)]
print(executor.map_array(train, *zip(*pairs, strict=True))[0].job_id)
