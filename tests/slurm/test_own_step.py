"""`hpc-train run` that srun has started: refused where the ranks could never start beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.errors import CheckError
from hpc_train.plan.plan import Shape
from hpc_train.slurm.own_step import own_step, refuse_within_step
from tests.cluster import Cluster
from tests.e2e.conftest import DIGITS
from tests.slurm.job_scripts import rendered_script, train_script

SHAPE = Shape(nodes=1, ranks_per_node=2, gpus_per_node=0)
# As 22.05 gives them to each; 26.05 calls the batch script -5 and the interactive step -6.
JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node1"}
STEP = {**JOB, "SLURM_STEP_ID": "3", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}
NO_STEPS = {
    "no job": {"SLURM_STEP_ID": "3", "SLURM_PROCID": "0"},
    "the shell of salloc": JOB,
    "a batch script": {**JOB, "SLURM_PROCID": "0"},
    "a batch script of 26.05": {**JOB, "SLURM_PROCID": "0", "SLURM_STEP_ID": "-5"},
    "the interactive step": {**STEP, "SLURM_STEP_ID": "4294967290"},
    "the interactive step of 26.05": {**STEP, "SLURM_STEP_ID": "-6"},
}


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """What srun says, and which steps squeue names."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("SLURM_CONF", raising=False)

    def give(srun: str, squeue: str) -> None:
        for name, script in (("srun", srun), ("squeue", squeue)):
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)

    return give


def proc(folder: Path, daemon: str = "[7.3]") -> Path:
    """A /proc in which this process is a child of a shell, and that one of slurmstepd."""
    for number, parent, title in (
        (os.getpid(), 100, "python\0run"),
        (100, 90, "bash\0"),
        (90, 1, f"slurmstepd: {daemon}\0\0"),
    ):
        place = folder / "proc" / str(number)
        place.mkdir(parents=True)
        (place / "cmdline").write_text(title)
        (place / "status").write_text(f"Name:\tx\nPPid:\t{parent}\nUid:\t0\n")
    return folder / "proc"


def looked(environ: dict[str, str], processes: Path) -> None:
    refuse_within_step({"PATH": os.environ["PATH"], **environ}, SHAPE, processes)


BUSY = "echo 'srun: error: Unable to create step for job 7: Requested nodes are busy' >&2; exit 1"
ALONE = "echo 7.batch; echo 7.3"


@pytest.mark.parametrize("place", NO_STEPS)
def test_what_is_no_task_of_an_ordinary_step_is_asked_nothing(
    answers: Callable[[str, str], None], tmp_path: Path, place: str
) -> None:
    answers(BUSY, "echo 7.3")
    processes = proc(tmp_path)
    assert own_step(NO_STEPS[place], processes) == ""
    looked(NO_STEPS[place], processes)


@pytest.mark.parametrize("daemon", ["[7.batch]", "[7.interactive]", "[6.3]", "[7.33]", "other"])
def test_variables_that_came_along_from_another_step_say_nothing(
    answers: Callable[[str, str], None], tmp_path: Path, daemon: str
) -> None:
    """`sbatch` and `salloc` that are typed in a step hand them on, also to a batch script."""
    answers(BUSY, "echo 7.3")
    processes = proc(tmp_path, daemon)
    looked({**STEP, "SLURM_STEP_NUM_TASKS": "2"}, processes)
    looked(STEP, processes)
    looked(STEP, tmp_path / "unreadable")


@pytest.mark.parametrize(
    ("more", "message", "fix"),
    [
        ({}, "srun has started this as step 7.3, which holds the nodes", "leave srun out"),
        ({"SLURM_PTY_PORT": "1"}, "started this shell as step 7.3", "srun --overlap --pty"),
        ({"SLURM_STEP_NUM_TASKS": "2"}, "srun has started this 2 times", "leave srun out"),
    ],
)
def test_a_task_of_a_step_that_holds_the_nodes_is_refused(
    answers: Callable[[str, str], None],
    tmp_path: Path,
    more: dict[str, str],
    message: str,
    fix: str,
) -> None:
    answers(BUSY, ALONE)
    with pytest.raises(CheckError, match=message) as caught:
        looked({**STEP, **more}, proc(tmp_path))
    assert fix in caught.value.hint


@pytest.mark.parametrize(
    ("srun", "squeue"),
    [
        ("exit 0", ALONE),  # srun --overlap
        (BUSY, "echo 7.3; echo 7.4"),  # another step may hold them, and end
        ("echo 'srun: error: Invalid user' >&2; exit 1", ALONE),
        (BUSY, "exit 1"),
    ],
)
def test_a_task_whose_ranks_may_start_is_not_refused(
    answers: Callable[[str, str], None], tmp_path: Path, srun: str, squeue: str
) -> None:
    answers(srun, squeue)
    processes = proc(tmp_path)
    looked(STEP, processes)
    looked({**STEP, "SLURM_PTY_PORT": "1", "SLURM_STEP_NUM_TASKS": "2"}, processes)


ONE_NODE = ("trainer.max_epochs=1", "trainer.accelerator=cpu", "--nodes=1", "--gpus=2")


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("srun", "code", "said"),
    [
        ("srun --ntasks=1", 3, "which holds the nodes: Slurm starts no ranks beside it"),
        ("srun --ntasks=2", 3, "srun has started this 2 times"),
        ("srun --ntasks=1 --overlap", 0, "completed"),
        ('script -qec "srun --ntasks=1 --pty $0" /dev/null', 3, "started this shell as step"),
        ('script -qec "srun --ntasks=1 --overlap --pty $0" /dev/null', 0, "completed"),
    ],
)
def test_srun_in_front_of_run(
    slurm_cluster: Cluster, tmp_path: Path, srun: str, code: int, said: str
) -> None:
    train = train_script(tmp_path, "run", str(DIGITS), *ONE_NODE)
    line = f"{srun} $0" if "$0" not in srun else srun
    salloc = ["salloc", "--nodes=1", "--ntasks=2", "--gres=gpu:2", "sh", "-c", line, str(train)]
    done = slurm_cluster.command(salloc, timeout_s=150, check=False)
    assert said in done.stdout + done.stderr, done
    assert done.returncode == code
    assert bool(list(tmp_path.glob("runs/*/*"))) is (code == 0), "a run is made where it trains"


@pytest.mark.slurm
def test_a_batch_script_that_is_submitted_within_a_step_trains(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """SLURM_STEP_ID and SLURM_STEP_NUM_TASKS are those of the step that it was typed in."""
    train = train_script(tmp_path, "run", str(DIGITS), *ONE_NODE)
    options = f"--nodes=1 --ntasks=2 --output={tmp_path}/out --wait"
    typed = f'test "$SLURM_PROCID" = 0 || exit 0; sbatch {options} {train}'
    srun = ["srun", "--nodes=1", "--ntasks=2", "--overlap", "sh", "-c", typed]
    slurm_cluster.command(srun, timeout_s=150)
    assert "completed" in (tmp_path / "out").read_text()


@pytest.mark.slurm
def test_a_rendered_script_that_srun_starts_is_refused(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    script = rendered_script(slurm_cluster, tmp_path, *ONE_NODE)
    srun = ["salloc", "--nodes=1", "--ntasks=2", "srun", "--ntasks=1", "bash", str(script)]
    done = slurm_cluster.command(srun, timeout_s=150, check=False)
    assert "srun has started this as step" in done.stdout + done.stderr
    assert done.returncode == 3
