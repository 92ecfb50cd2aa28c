"""A launcher in front of hpc-train: refused where it makes several runs, and only there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.backends.started_by import refuse_several
from hpc_train.errors import CheckError
from tests.cli.mistaken import project

__all__ = ["project"]

HPC = "/usr/bin/python3\0/venv/bin/hpc-train\0submit\0cfg.yaml\0"
TORCHRUN = "/usr/bin/python3\0/venv/bin/torchrun\0--nproc_per_node=2\0hpc-train\0"
STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "3", "SLURM_PROCID": "0"}


def proc(folder: Path, *titles: str) -> Path:
    """A /proc in which this process is called by the first title, its parent by the next."""
    numbers = [os.getpid(), *range(100, 99 + len(titles))]
    for number, parent, title in zip(numbers, [*numbers[1:], 1], titles, strict=True):
        place = folder / "proc" / str(number)
        place.mkdir(parents=True)
        (place / "cmdline").write_text(title)
        (place / "status").write_text(f"Name:\tx\nPPid:\t{parent}\nUid:\t0\n")
    return folder / "proc"


@pytest.mark.parametrize(
    ("environ", "above", "launcher"),
    [
        ({"WORLD_SIZE": "2"}, [TORCHRUN], "torchrun"),
        ({"WORLD_SIZE": "2"}, ["bash\0-c\0hpc-train\0", TORCHRUN], "torchrun"),
        ({"WORLD_SIZE": "2"}, ["python\0-m\0torch.distributed.run\0x\0"], "torch.distributed.run"),
        ({"WORLD_SIZE": "4"}, ["python\0/venv/bin/accelerate\0launch\0"], "accelerate"),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, ["/usr/bin/mpirun\0-np\0002\0"], "mpirun"),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, ["/usr/bin/orted\0"], "orted"),
        ({"PMI_SIZE": "2"}, ["/usr/bin/hydra_pmi_proxy\0"], "hydra_pmi_proxy"),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "2"}, ["slurmstepd: [7.3]\0"], "srun"),
        # One of a kind, left in a shell, come along with a job, or typed by a rank of a training.
        ({"WORLD_SIZE": "1"}, [TORCHRUN], ""),
        ({"WORLD_SIZE": "2"}, ["bash\0", "sshd\0"], ""),
        ({"WORLD_SIZE": "2"}, ["bash\0", "slurmstepd: [8.batch]\0"], ""),
        ({"WORLD_SIZE": "2"}, ["python\0train.py\0", TORCHRUN], ""),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "1"}, ["slurmstepd: [7.3]\0"], ""),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "2"}, ["slurmstepd: [8.batch]\0"], ""),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "2"}, ["python\0train.py\0", "slurmstepd: [7.3]\0"], ""),
        (
            {**STEP, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PTY_PORT": "9"},
            ["bash\0", "slurmstepd: [7.3]\0"],
            "",
        ),
    ],
)
def test_a_launcher_right_above_is_told_by_its_process(
    tmp_path: Path, environ: dict[str, str], above: list[str], launcher: str
) -> None:
    processes = proc(tmp_path, HPC, *above)
    if not launcher:
        refuse_several(environ, processes)
        return
    with pytest.raises(CheckError, match=f"{launcher} has started this \\d times") as caught:
        refuse_several(environ, processes)
    assert caught.value.hint.startswith(f"leave {launcher} out")


@pytest.mark.parametrize(
    ("environ", "above", "launcher"),
    [
        ({"WORLD_SIZE": "2"}, [TORCHRUN], "torchrun"),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "2"}, ["slurmstepd: [7.3]\0"], "srun"),
        # A process of a rank's own, and a notebook whose server was started by a launcher.
        ({"WORLD_SIZE": "2"}, ["python\0train.py\0", TORCHRUN], ""),
        ({"WORLD_SIZE": "2"}, ["python\0-m\0jupyterlab\0", TORCHRUN], ""),
        ({"WORLD_SIZE": "1"}, [TORCHRUN], ""),
    ],
)
def test_a_script_that_calls_the_python_interface_is_told_as_the_command_is(
    tmp_path: Path, environ: dict[str, str], above: list[str], launcher: str
) -> None:
    processes = proc(tmp_path, "python\0-u\0call.py\0", *above)
    if not launcher:
        refuse_several(environ, processes)
        return
    with pytest.raises(CheckError, match=f"{launcher} has started this 2 times") as caught:
        refuse_several(environ, processes)
    assert "load(PATH, nodes=3, gpus=4) says" in caught.value.hint
    assert "subprocess.run(['hpc-train', 'submit'" in caught.value.hint


@pytest.mark.torch
@pytest.mark.parametrize("command", ["run", "submit", "bench"])
def test_torchrun_in_front_makes_no_run(project: Path, command: str) -> None:
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    argv += ["-m", "hpc_train.cli", command, "cfg.yaml"]
    argv += ["--cluster", "local"] if command != "run" else []
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
    assert "has started this 2 times" in done.stderr
    assert done.returncode
    assert not list(project.glob("runs/*/*"))


@pytest.mark.torch
def test_torchrun_in_front_of_a_script_that_submits_makes_no_run(project: Path) -> None:
    (project / "call.py").write_text(
        "import hpc_train\nhpc_train.submit(hpc_train.load('cfg.yaml'), cluster='local')\n"
    )
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    done = subprocess.run(
        [*argv, "call.py"], cwd=project, capture_output=True, text=True, check=False
    )
    assert "torch.distributed.run has started this 2 times" in done.stderr
    assert done.returncode
    assert not list(project.glob("runs/*/*"))
