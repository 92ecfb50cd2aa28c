"""The peer: one job submitted with submitit and nothing else."""

from __future__ import annotations

import sys

import submitit


def train() -> None:
    """What the job would do."""


executor = submitit.AutoExecutor(folder=sys.argv[1], cluster="slurm")
executor.update_parameters(
    name="digits",
    nodes=3,
    tasks_per_node=4,
    timeout_min=30,
    slurm_additional_parameters={"gres": "gpu:4"},
)
print(executor.submit(train).job_id)
