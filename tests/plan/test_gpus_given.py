"""GPUs that Slurm gave: by the variables of a step, and by what the controller knows of a job."""

from __future__ import annotations

import pytest

from hpc_train.plan.gpus_given import gpus_of_job, gpus_on_node, gpus_were_given


@pytest.mark.parametrize(
    ("job", "count"),
    [
        ({}, 0),
        ({"TresPerNode": "gres/gpu:4"}, 4),
        ({"TresPerNode": "gres:gpu:a100:2"}, 2),
        ({"TresPerNode": "gres/gpu:h100=8"}, 8),
        ({"TresPerNode": "(null)", "TRES": "cpu=8,gres/gpu=6", "NumNodes": "3"}, 2),
        ({"TRES": "(null)", "AllocTRES": "cpu=8,gres/gpu=7", "NumNodes": "2"}, 4),
        ({"AllocTRES": "cpu=8,mem=1G", "NumNodes": "2"}, 0),
    ],
)
def test_a_jobs_gpus_a_node_are_read_from_what_scontrol_shows(
    job: dict[str, str], count: int
) -> None:
    assert gpus_of_job(job) == count


@pytest.mark.parametrize(
    ("variables", "given"),
    [
        ({}, False),
        ({"SLURM_GPUS_ON_NODE": "0"}, False),
        ({"SLURM_GPUS_ON_NODE": "2"}, True),
        ({"SLURM_STEP_GPUS": "0,1"}, True),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, False),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, False),
        ({"CUDA_VISIBLE_DEVICES": "GPU-12"}, True),
    ],
)
def test_gpus_are_given_by_slurm_or_by_the_user(variables: dict[str, str], given: bool) -> None:
    assert gpus_were_given(variables) is given


def test_the_steps_own_list_counts_before_the_jobs() -> None:
    assert gpus_on_node({"SLURM_JOB_GPUS": "0-7", "SLURM_STEP_GPUS": "2,4-5"}) == 3
