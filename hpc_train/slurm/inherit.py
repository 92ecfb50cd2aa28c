"""What a new job, and a step of this one, must not inherit from the environment around it."""

from __future__ import annotations

import re
from collections.abc import Mapping

# What an enclosing job was told of itself is not true of the job that it submits, and sbatch hands
# the environment on (sbatch(1), --export): restarts, the place in an array, nodes.
OF_THIS_JOB = re.compile(r"(?!SLURM_(?:CONF|CLUSTERS|TIME_FORMAT)$)(?:SLURM|SRUN|SUBMITIT)_")
# What the batch step was given for itself must not narrow the step that it starts: srun(1),
# "INPUT ENVIRONMENT VARIABLES"; lightning#19567 and submitit#1646 are about the slow-down.
OF_THE_BATCH_STEP = re.compile(
    r"SLURM_(CPU_BIND|MEM_BIND|NTASKS|NPROCS|TASKS_PER_NODE|DISTRIBUTION|STEP|SRUN_COMM|LAUNCH_NODE)"
    r"|SLURM_(CPUS_PER_TASK|THREADS_PER_CORE|TRES_PER_TASK|PROCID|LOCALID|GTIDS|UMASK)"
    r"|SUBMITIT_"
)


def for_new_job(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for sbatch: where the cluster is stays."""
    return {name: value for name, value in environ.items() if not OF_THIS_JOB.match(name)}


def for_step(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for srun within this job."""
    return {name: value for name, value in environ.items() if not OF_THE_BATCH_STEP.match(name)}
