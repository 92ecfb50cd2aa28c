"""`hpc-train submit`: what it says of a job that Slurm has taken."""

from __future__ import annotations

import pytest

from tests.cli.conftest import DIGITS, Slurm


@pytest.fixture
def taken(slurm: Slurm) -> Slurm:
    """A Slurm that takes every job, as its number 7."""
    slurm.has("sbatch", "echo Submitted batch job 7")
    for program in ("srun", "scontrol", "sinfo"):
        slurm.has(program, "exit 1")
    return slurm


@pytest.mark.parametrize(
    ("squeue", "warning"),
    [
        (
            ["7|PENDING|PartitionDown|N/A"],
            "warning: the job will wait for ever: slurm.partition is",
        ),
        (["7|PENDING|Priority|N/A"], ""),
        (["7|RUNNING|None|N/A"], ""),
        ([], ""),  # it does not know the job yet
    ],
)
def test_a_job_that_will_never_start_is_told_at_once(hpc, taken, squeue, warning):
    taken.says(*squeue)
    said = hpc("submit", DIGITS)
    assert said.code == 0
    assert said.out.startswith("submitted  job 7\n")
    assert said.err.startswith(warning)
    assert bool(said.err) == bool(warning)
    assert taken.asked() == 1


def test_a_queue_that_cannot_be_asked_costs_the_warning_and_not_the_submission(hpc, taken):
    taken.has("squeue", "echo slurm_load_jobs error: Unable to contact >&2; exit 1")
    said = hpc("submit", DIGITS)
    assert (said.code, said.err) == (0, "")
