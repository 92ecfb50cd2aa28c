"""A job that was preempted and started again in the same log is told as that."""

from __future__ import annotations

from tests.diagnose.test_causes import findings

SUBMITIT = "submitit {} (2026-03-04 05:06:07,001) - {}"
PREEMPTED = SUBMITIT.format("WARNING", "Caught signal SIGUSR2 on n1: this job is preempted.")
REQUEUED = SUBMITIT.format("INFO", "Requeued job 71 (3 remaining timeouts)")
AGAIN = (
    "submitit INFO (2026-03-04 05:16:07,001) - Starting with JobEnvironment(job_id={}, hostname=n2,"
    " local_rank=0(1), node=0(1), global_rank=0(1))"
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def test_a_preempted_job_that_started_again_is_not_told_to_requeue():
    (found,) = findings("\n".join([PREEMPTED, REQUEUED, AGAIN.format(71)]))
    assert found.cause == (
        "the job was preempted and requeued; it started again at 2026-03-04 05:16:07"
    )
    assert "checkpoint" not in found.fix


def test_what_failed_after_the_new_start_is_the_failure():
    (found,) = findings("\n".join([PREEMPTED, REQUEUED, AGAIN.format(71), OOM]))
    assert found.name == "torch_oom"


def test_without_a_new_start_of_that_job_nothing_is_said_of_one():
    for lines in ([PREEMPTED, REQUEUED], [PREEMPTED, REQUEUED, AGAIN.format(72)]):
        (found,) = findings("\n".join(lines))
        assert found.cause == "the job was preempted"


def test_another_job_took_the_nodes_only_where_slurm_says_so():
    slurm = "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-03-04T05:06:07 DUE TO PREEMPTION"
    (found,) = findings(f"{slurm} ***")
    assert "another one took its nodes" in found.cause
