"""Are the jobs there that a job is to wait for? Of one that is not, Slurm asks no more."""

from __future__ import annotations

import re

from hpc_train.errors import SlurmError
from hpc_train.slurm.command import is_available, run

ANSWER_S = 20.0
_PART = re.compile(r"(after\w*):([\d:+_*]+)")


def check_dependency(written: str, resumed: str = "") -> None:
    """Refuse jobs that neither the controller nor the accounting knows, and failed ones of afterok.

    Of a job that it has forgotten (MinJobAge, slurm.conf(5)) Slurm asks no more, and starts what
    depends on it at once, whatever came of it [seen on 22.05].

    Args:
        written: As `slurm.dependency` is.
        resumed: The run that is submitted again; Slurm may have forgotten its jobs meanwhile.

    Raises:
        SlurmError: naming the job.
    """
    wanted = [
        (kind, job)
        for kind, jobs in _PART.findall(written)
        for job in re.findall(r"(?:^|:)(\d+)", jobs)
    ]
    if not wanted:
        return
    states = _states(sorted({job for _, job in wanted}))
    for kind, job in wanted:
        if states is not None and job not in states and not resumed:
            raise SlurmError(
                f"slurm.dependency is {written}, and Slurm knows no job {job}",
                "`squeue --me` and `sacct -X` list yours; or wait for a run: --after RUN",
            )
        ends = (states or {}).get(job, set())
        bad = sorted(ends & {"FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"})
        if kind == "afterok" and bad:
            raise SlurmError(
                f"slurm.dependency is {written}, and job {job} has ended as {bad[0]}",
                f"hpc-train resume {resumed} slurm.dependency=null"
                if resumed
                else f"leave it out, name another job, or write afterany:{job}",
            )


def _states(jobs: list[str]) -> dict[str, set[str]] | None:
    """The states of each job and its tasks; None where that cannot be told for all of them."""
    names = ",".join(jobs)
    argv = ["squeue", "--noheader", "--states=all", f"--jobs={names}", "--format=%F|%T"]
    said = run(argv, timeout_s=ANSWER_S)
    if said.returncode != 0 and "Invalid job id" not in said.stderr:
        return None
    found = said.stdout
    if {line.partition("|")[0] for line in found.splitlines()} != set(jobs):
        if not is_available("sacct"):
            return None
        argv = ["sacct", "-n", "-P", "-X", f"--jobs={names}", "--format=JobID,State"]
        past = run(argv, timeout_s=ANSWER_S)
        if past.returncode != 0:
            return None  # no accounting at this site: what has ended is not known
        found += past.stdout
    states: dict[str, set[str]] = {}
    for line in found.splitlines():
        job, _, state = line.partition("|")
        states.setdefault(job.partition("_")[0], set()).add((state.split() or [""])[0])
    return states
