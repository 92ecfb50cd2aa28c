"""What a job waits for, as squeue tells of its dependency, in words. Source: squeue(1), %E."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from hpc_train.slurm.command import run

# `afterok:61(unfulfilled)`, `afterany:7_*(failed)`, `singleton(unfulfilled)`
_PART = re.compile(r"(after\w*|expand|singleton)(?::(\d+(?:_\S*?)?)(?:\+\d+)?)?\((\w+)\)")
_UNTIL = {
    "after": "to begin",
    "afterany": "to end",
    "afternotok": "to fail",
    "afterok": "to end well",
    "aftercorr": "to end well, task by task",
    "afterburstbuffer": "to end, with its burst buffer",
}
_MOST_SHOWN = 4


def waited_for(dependency: str) -> str:
    """`slurm.dependency: it waits for job 61 to end well`; empty where Slurm does not tell."""
    told = [(kind, job) for kind, job, met in _PART.findall(dependency) if met == "unfulfilled"]
    jobs = [f"job {job} {_UNTIL[kind]}" for kind, job in told if kind in _UNTIL]
    if any(kind == "singleton" for kind, _ in told):
        jobs.append("your other jobs of its name to end")
    if not jobs or len(jobs) < len(told):
        return ""
    between = " or " if "?" in dependency else ", "
    more = f" and {len(jobs) - _MOST_SHOWN} more" if jobs[_MOST_SHOWN:] else ""
    return f"slurm.dependency: it waits for {between.join(jobs[:_MOST_SHOWN])}{more}"


def never_met(dependency: str) -> str:
    """`afterok:61, and job 61 has ended as CANCELLED`; empty where Slurm does not tell which."""
    parts = [(kind, job, met) for kind, job, met in _PART.findall(dependency) if job]
    told = [it for it in parts if it[2] not in ("unfulfilled", "fulfilled")]
    return " and ".join(
        f"{kind}:{job}, and job {job} has ended{'' if how == 'failed' else f' as {how}'}"
        for kind, job, how in told[:_MOST_SHOWN]
    )


def failed_jobs(dependencies: Collection[str]) -> list[str]:
    """The jobs that dependencies have waited for in vain."""
    parts = [part for it in dependencies for part in _PART.findall(it)]
    return sorted({job.partition("_")[0] for _, job, met in parts if met == "failed" and job})


def ends_of(jobs: Sequence[str], timeout_s: float) -> dict[str, set[str]]:
    """How these jobs, or their tasks, have ended by Slurm's words; of those that it still knows.

    Raises:
        SlurmError: it does not answer.
    """
    argv = ["squeue", "--noheader", "--states=all", f"--jobs={','.join(jobs)}", "--format=%F|%T"]
    ends: dict[str, set[str]] = {}
    for line in run(argv, timeout_s=timeout_s).stdout.splitlines():
        job, _, state = line.partition("|")
        ends.setdefault(job, set()).add(state)
    return ends


def with_ends(dependency: str, ends: Mapping[str, Collection[str]]) -> str:
    """The dependency with the end of each job that has failed it."""

    def told(part: re.Match[str]) -> str:
        states = sorted(ends.get((part[2] or "").partition("_")[0], ()))
        guilty = [it for it in states if (it == "COMPLETED") == (part[1] == "afternotok")]
        return part[0].replace("(failed)", f"({guilty[0]})") if guilty else part[0]

    return _PART.sub(told, dependency)
