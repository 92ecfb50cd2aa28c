"""`mpirun` and `mpiexec` in front of a training: the ranks, and what the script reads of them."""

from __future__ import annotations

import pytest

from hpc_train.plan.translate import translate
from hpc_train.plan.translation import Translation


def made(text: str) -> Translation:
    return translate(text, ())


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            "mpiexec -n 8 python scripts/train.py --data_dir a/b",
            "--gpus 8 scripts/train.py -- --data_dir a/b",
        ),
        ("mpirun -np 1 python train.py", "--gpus 1 train.py"),
        ("mpirun -np 8 train.py", "--gpus 8 train.py"),
        ("/opt/bin/mpiexec.hydra -np=2 python3 -u train.py", "--gpus 2 train.py"),
        ("mpirun --np 16 -H a:8,b:8 python train.py", "--nodes 2 --gpus 8 train.py"),
        ("mpirun -np 4 --host localhost:4 python train.py", "--nodes 1 --gpus 4 train.py"),
        ("mpiexec -n 12 -ppn 4 python train.py", "--nodes 3 --gpus 4 train.py"),
        ("mpiexec -ppn 8 -n 4 python train.py", "--gpus 4 train.py"),
        ("mpirun -npernode 4 python train.py", "--gpus 4 train.py"),
        ("mpirun -n 4 --hostfile hosts python train.py", "--gpus 4 train.py"),
        (
            "mpirun -np 8 --bind-to none -map-by slot --mca pml ob1 -tag-output python a.py --b 1",
            "--gpus 8 a.py -- --b 1",
        ),
        ("mpirun python train.py", "train.py"),
    ],
)
def test_the_ranks_of_mpi_are_those_of_the_command(command: str, line: str) -> None:
    found = made(command)
    assert found.refused == []
    assert found.submit_line() == f"hpc-train submit {line}"


def test_what_the_script_has_to_read_is_said() -> None:
    said = dict(made("mpiexec -n 8 python train.py").said)["mpiexec"]
    assert "reads RANK, WORLD_SIZE and LOCAL_RANK in the place of MPI.COMM_WORLD" in said


def test_variables_go_to_the_ranks() -> None:
    command = "mpirun -np 2 -x NCCL_DEBUG=INFO -x DATA -x PATH -genv OMP_NUM_THREADS 4 python t.py"
    found = made(command)
    assert found.nested()["env"] == {
        "variables": {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "4"},
        "passthrough": ["DATA"],
    }
    assert (
        "-x PATH",
        "left out: env.venv, env.conda or env.modules bring the programs",
    ) in found.said


def test_hosts_and_options_of_mpi_are_told_one_by_one() -> None:
    said = dict(made("mpirun -np 4 -H a,b:2 --bind-to core -mca btl tcp python train.py").said)
    assert said["-H a,b:2"].endswith("by ssh: hpc-train launch --hosts a,b")
    assert said["--bind-to core"] == "left out: Slurm binds the ranks"
    assert said["-mca btl tcp"] == "left out: it is of MPI, which starts nothing here"


def test_a_batch_script_counts_its_tasks() -> None:
    head = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
    found = made(f"{head}module load openmpi\nmpirun python train.py\n")
    assert found.submit_line() == "hpc-train submit --nodes 2 --gpus 4 config.yaml"
    assert made(f"{head}srun hostname\nmpirun -np 8 python train.py\n").shape_options() == [
        *("--nodes", "2", "--gpus", "4")
    ]
