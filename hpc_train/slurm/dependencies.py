"""Are the jobs there that a job is to wait for? Of one that is not, Slurm asks no more."""

from __future__ import annotations

import re

from hpc_train.errors import SlurmError
from hpc_train.slurm.command import is_available, run

ANSWER_S = 20.0
_BAD = {"FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"}
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
        why_not, fix = _trouble(kind, job, states, is_resumed=bool(resumed))
        if why_not:
            raise SlurmError(
                f"slurm.dependency is {written}, and {why_not}",
                f"hpc-train resume {resumed} slurm.dependency=null" if resumed else fix,
            )


def why_not_after(kind: str, job: str) -> tuple[str, str]:
    """Why a job cannot wait for that one, and what to do; empty where Slurm does not tell.

    Args:
        kind: `afterok`, `afterany` or another one of sbatch(1), --dependency.
        job: Its id.
    """
    if not is_available("squeue"):
        return "", ""
    try:
        states = _states([job])
    except SlurmError:
        return "", ""
    return _trouble(kind, job, states, is_resumed=False)


def _trouble(
    kind: str, job: str, states: dict[str, set[str]] | None, *, is_resumed: bool
) -> tuple[str, str]:
    if states is not None and job not in states and not is_resumed:
        fix = "`squeue --me` and `sacct -X` list yours; or wait for a run: --after RUN"
        return f"Slurm knows no job {job}", fix
    bad = sorted((states or {}).get(job, set()) & _BAD)
    if kind == "afterok" and bad:
        fix = f"leave it out, name another job, or write afterany:{job}"
        return f"job {job} has ended as {bad[0]}", fix
    return "", ""


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
