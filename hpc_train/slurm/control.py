"""What changes a job: submit, requeue, leave nodes out, cancel."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.errors import SlurmError
from hpc_train.slurm.command import NO_ANSWER, run
from hpc_train.slurm.inherit import for_new_job
from hpc_train.slurm.jobs import job_details, jobs_of_scripts
from hpc_train.slurm.refusals import refusal_error

CANCEL_S = 10.0
# The request has left, and may be carried out all the same (slurm_strerror, slurm/slurm_errno.h).
ANSWER_LOST = (NO_ANSWER, "Socket timed out", "Zero Bytes were transmitted or received")


@dataclass(frozen=True)
class StartEstimate:
    """Slurm's own verdict on a script: when, where, in its words."""

    text: str
    start: str
    nodes: str
    partition: str


def sbatch(
    script: Path,
    options: Sequence[str] = (),
    *,
    known: Collection[str],
    asked: Mapping[str, str | None] | None = None,
) -> str:
    """Submit `script`; options given here win over those in the script (sbatch(1)).

    Slurm may take the job and its answer be lost (a killed sbatch, a controller that is slow to
    answer: "Socket timed out on send/recv operation"). So a job of this very script that waits or
    runs and is not `known` is that one, and nothing is submitted: to call this again is safe.

    Args:
        known: Jobs of the script that were submitted before.
        asked: The script's options by name, for the words of a refusal.

    Returns:
        The job id.

    Raises:
        SlurmError: with Slurm's words and the key to change, or that there was no answer.
    """
    lost = jobs_of_scripts(str(script)) - frozenset(known)
    if lost:
        return max(lost, key=int)
    environ = for_new_job(os.environ, asked or {})
    said = run(["sbatch", "--parsable", *options, str(script)], env=environ)
    if said.wordless:
        raise SlurmError(f"sbatch: {NO_ANSWER} (it ended with {said.returncode})")
    if said.returncode != 0:
        raise refusal_error(said.stderr, asked)
    return said.stdout.strip().split(";")[0]


def is_answer_lost(words: str) -> bool:
    """Whether Slurm may have done what was asked, though its program failed with these words."""
    return any(text in words for text in ANSWER_LOST)


def test_only(script: Path, options: Mapping[str, str | None]) -> StartEstimate:
    """Ask Slurm when and where the script would start; nothing is submitted (sbatch --test-only).

    Args:
        script: With the options in it.
        options: The same by name, for the words of a refusal.

    Raises:
        SlurmError: with Slurm's words and the key to change.
    """
    said = run(["sbatch", "--test-only", str(script)], env=for_new_job(os.environ, options))
    if said.returncode != 0:
        raise refusal_error(said.stderr, options)
    text = (said.stderr + said.stdout).strip().removeprefix("sbatch: ")
    found = re.search(r"to start at (\S+)(?:.* on nodes (\S+))?(?:.* in partition (\S+))?", text)
    start, nodes, partition = found.groups(default="") if found else ("", "", "")
    return StartEstimate(text, start, nodes, partition)


def job_id_in(environ: Mapping[str, str]) -> str:
    """The job of this environment by the name that scontrol takes: a task of an array has two ids.

    Source: scontrol(1), "requeue <job_list>".
    """
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else environ["SLURM_JOB_ID"]


def requeue(job: str, restarts: int) -> None:
    """Put a running job back into the queue; Slurm then terminates it at once.

    Whatever scontrol says, the job itself tells whether Slurm has heard it, since its count of
    restarts grows at once [seen on 22.05]; so an answer that was lost is not asked for twice.

    Args:
        restarts: How often the job had been restarted when this start of it began.

    Raises:
        SlurmError: when the site or the job does not allow it, or the controller is away.
    """
    try:
        said = run(["scontrol", "requeue", job], timeout_s=30)
    except SlurmError as error:
        trouble = error
    else:
        if said.returncode == 0:
            return
        words = said.stderr.strip() or f"{NO_ANSWER} (it ended with {said.returncode})"
        trouble = SlurmError(f"scontrol requeue {job}: {words}")
    if job_details(job).restarts <= restarts:
        raise trouble


def exclude_nodes(job: str, nodes: str) -> None:
    """Leave out just `nodes` (NODE,NODE...) at the next start of a pending or completing job.

    Raises:
        SlurmError: when the job runs, or a name is no node of this cluster.
    """
    said = run(["scontrol", "update", f"JobId={job}", f"ExcNodeList={nodes}"], timeout_s=30)
    if said.returncode != 0:
        raise SlurmError(f"scontrol update ExcNodeList: {said.stderr.strip()}")


def set_dependency(job: str, dependency: str) -> None:
    """Let a waiting job wait for something else (scontrol(1), Dependency).

    Raises:
        SlurmError: when it has begun or ended, or Slurm does not take the dependency.
    """
    said = run(["scontrol", "update", f"JobId={job}", f"Dependency={dependency}"], timeout_s=30)
    if said.returncode != 0:
        raise SlurmError(f"scontrol update Dependency: {said.stderr.strip()}")


def cancel(*jobs: str) -> None:
    """End jobs for good; the id of an array means all of its tasks.

    Raises:
        SlurmError: when Slurm does not know a job, refuses, or gives no answer in `CANCEL_S`.
    """
    said = run(["scancel", *jobs], timeout_s=CANCEL_S)
    if said.returncode != 0 or said.stderr.strip():
        raise SlurmError(f"scancel {' '.join(jobs)}: {said.stderr.strip()}")


def end_steps(steps: Sequence[str]) -> None:
    """SIGKILL to every task of the steps (`JOB.STEP`); one that has ended meanwhile is no error.

    Only a request: a signal that reaches a node before the step's slurmstepd listens there is lost
    without a word, while squeue lists the step already. Send it again until the step is gone.
    """
    run(["scancel", "--signal=KILL", *steps], timeout_s=30)
