"""Reports of runs: what their directories tell, and what Slurm's accounting says of their jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hpc_train.backends.observe import observe
from hpc_train.errors import HpcTrainError
from hpc_train.report.gather import RunReport, gather
from hpc_train.report.usage import Accounted
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus
from hpc_train.slurm.accounting import jobs_usage


def report_runs(directories: Sequence[RunDir]) -> list[RunReport]:
    """A report of each, by one query of Slurm for the state of all.

    Raises:
        HpcTrainError: a history cannot be read.
    """
    now = time.time()
    try:
        return [
            gather(directory, status, now, _accounted(status))
            for directory, status in zip(directories, observe(directories, now), strict=True)
        ]
    except OSError as error:
        raise HpcTrainError(
            f"{error.filename} cannot be read: {error.strerror}",
            "ask the run's owner for the permission to read it",
        ) from error


def _accounted(status: RunStatus) -> Accounted:
    """Of all jobs that have carried the run; nothing where it was not on Slurm."""
    jobs = dict.fromkeys(attempt.job_id for attempt in status.attempts if attempt.job_id)
    usage = jobs_usage(list(jobs)) if status.backend == "slurm" else None
    if usage is None:
        return Accounted()
    held_s = usage.allocated_cpu_s
    return Accounted(
        cpu_share=usage.cpu_s / held_s if held_s and usage.cpu_s else None,
        memory_mib=usage.memory_mib or None,
    )
