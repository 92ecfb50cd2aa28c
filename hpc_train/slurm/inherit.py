"""What a new job, and a step of this one, must not inherit from the environment around it."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

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
# Variables that win over what stands in a script (sbatch(1), "INPUT ENVIRONMENT VARIABLES"), where
# they are not named after their option.
_OPTION_OF = {
    "TIMELIMIT": "time",
    "MEM_PER_NODE": "mem",
    "ARRAY_INX": "array",
    "ACCTG_FREQ": "acctg-freq",
    "REQ_SWITCH": "switches",
}
# Options of which a job has one: a variable of another one says the same of it, or contradicts.
_ONE_OF = (
    ("mem", "mem-per-cpu", "mem-per-gpu"),
    ("gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"),
    ("requeue", "no-requeue"),
)
_NEVER = ("wait", "array")  # a submission that stays, and one of many jobs


def for_new_job(environ: Mapping[str, str], options: Container[str] = ()) -> dict[str, str]:
    """The environment for sbatch: where the cluster is stays.

    Args:
        options: sbatch's long options that the job's script has: no variable wins over them.
    """
    return {
        name: value
        for name, value in environ.items()
        if not OF_THIS_JOB.match(name) and not _wins_over(name, options)
    }


def unused_variables(environ: Mapping[str, str], options: Container[str]) -> list[str]:
    """`SBATCH_TIMELIMIT=3`: what `for_new_job` leaves out since the script says it, by name."""
    return sorted(f"{name}={environ[name]}" for name in environ if _wins_over(name, options))


def _wins_over(variable: str, options: Container[str]) -> bool:
    if not variable.startswith("SBATCH_"):
        return False
    word = variable.removeprefix("SBATCH_")
    option = _OPTION_OF.get(word, word.lower().replace("_", "-"))
    alike = next((group for group in _ONE_OF if option in group), (option,))
    return option in _NEVER or any(one in options for one in alike)


def for_step(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for srun within this job."""
    return {name: value for name, value in environ.items() if not OF_THE_BATCH_STEP.match(name)}
