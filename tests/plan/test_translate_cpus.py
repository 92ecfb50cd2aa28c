"""CPUs of a task in a batch script, whose ranks share them."""

from __future__ import annotations

import pytest

from tests.plan.test_translate import made


@pytest.mark.parametrize(
    ("options", "command", "cpus"),
    [
        ("-N 1 --gpus-per-node=4 -c 32", "torchrun --nproc_per_node=4 a.py", 8),
        (
            "-N 1 --gres=gpu:4 -c 32",
            "python -m torch.distributed.launch --nproc_per_node=4 a.py",
            8,
        ),
        ("-N 2 --ntasks-per-node=1 --gres=gpu:4 -c 32", "srun torchrun --nproc_per_node=4 a.py", 8),
        ("-N 2 --ntasks-per-node=4 --gres=gpu:4 -c 8", "srun python a.py", 8),
        ("-N 2 --ntasks-per-node=2 --gres=gpu:4 -c 8", "srun python a.py", 4),
        ("-N 2 -n 8 --gres=gpu:4 -c 8", "srun python a.py", 8),
        ("-n 1 --gres=gpu:2 -c 8", "python a.py", 4),
        ("-n 1 --gres=gpu:4 -c 2", "python a.py", 1),
        ("-n 1 --gres=gpu:1 -c 6", "python a.py", 6),
        ("-n 1 -c 6", "python a.py", 6),
        ("--gres=gpu:4 --cpus-per-gpu=8", "torchrun --nproc_per_node=4 a.py", 8),
        ("--gres=gpu:4 -c 32", "srun -c 32 torchrun --nproc_per_node=4 a.py", 8),
    ],
)
def test_the_cpus_of_a_task_are_those_of_its_ranks(options: str, command: str, cpus: int) -> None:
    """32 CPUs for each of four ranks were asked for, of a job that had 32 in all."""
    found = made(f"#!/bin/bash\n#SBATCH {options}\n{command}")
    assert found.refused == []
    assert found.nested()["slurm"]["cpus_per_gpu"] == cpus


def test_cpus_of_a_task_that_differ_are_told() -> None:
    found = made("#!/bin/bash\n#SBATCH --gres=gpu:4 -c 32\nsrun -c 16 python a.py")
    assert found.refused == [("-c=16", "contradicts -c=32, said before; leave one out")]


NO_GPUS = (
    "GPUs",
    (
        "no option asks for one, and hpc-train asks for one a rank; for ranks on CPUs add"
        " script.accelerator=cpu to the command"
    ),
)


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("#!/bin/bash\n#SBATCH --ntasks-per-node=2 --cpus-per-task=2\nsrun python a.py", True),
        ("#!/bin/bash\n#SBATCH --mem=4G --gres=nvme:1\npython a.py", True),
        ("#!/bin/bash\n#SBATCH -c 8\ntorchrun --nproc_per_node=4 a.py", True),
        ("srun --nodes=2 --ntasks-per-node=4 python a.py", True),
        ("srun -n 4 python a.py", True),
        ("#!/bin/bash\n#SBATCH --ntasks-per-node=2 --gres=gpu:2\nsrun python a.py", False),
        ("#!/bin/bash\n#SBATCH --gres=shard:2\npython a.py", False),
        ("#!/bin/bash\n#SBATCH -n 4\nsrun --gpus-per-task=1 python a.py", False),
        ("#!/bin/bash\n#SBATCH --gpus=a100:2 -n 2\nsrun python a.py", False),
        ("#!/bin/bash\n#SBATCH --mem-per-gpu=4G -n 2\nsrun python a.py", False),
        ("#!/bin/bash\n#SBATCH -n 2\naccelerate launch --cpu --num_processes 2 a.py", False),
        ("#!/bin/bash\n#SBATCH -n 2\nexport CUDA_VISIBLE_DEVICES=0,1\npython a.py", False),
        ("srun python a.py", False),  # in a job that is not shown
        ("srun -N 2 torchrun --nproc_per_node=4 a.py", False),
        ("torchrun --nproc_per_node=4 a.py", False),
    ],
)
def test_a_request_without_gpus_is_told_with_the_key_for_ranks_on_cpus(
    text: str, is_told: bool
) -> None:
    """It became a request for GPUs without a word."""
    assert (NO_GPUS in made(text).said) == is_told
