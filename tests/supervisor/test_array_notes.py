"""`sbatch --array` of a script that was rendered for one training."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.plan.from_config import make_plan
from hpc_train.plan.sweep_plan import SweepPlan, SweepPoint
from hpc_train.runs.layout import RunDir
from hpc_train.supervisor.__main__ import run_of_script, run_of_sweep_script
from hpc_train.supervisor.attempt_notes import array_notes
from tests.plan.configs import config

TASK = {
    "SLURM_JOB_ID": "12",
    "SLURM_ARRAY_JOB_ID": "11",
    "SLURM_ARRAY_TASK_ID": "1",
    "SLURM_ARRAY_TASK_COUNT": "2",
}


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    (tmp_path / "nets.py").touch()
    made = make_plan(config(), workdir=str(tmp_path), python="python", for_script=True)
    return run_of_script(made.to_json(), TASK, tmp_path)


def test_that_each_task_trains_the_same_is_noted(run: RunDir) -> None:
    (note,) = array_notes(run, TASK)
    assert note == (
        "task 1 of array 11: each of its 2 tasks trains the same, with the same seed, unless the"
        " code reads SLURM_ARRAY_TASK_ID; for a sweep: hpc-train render CFG --sweep KEY=VALUES"
    )


@pytest.mark.parametrize(
    "environ",
    [{"SLURM_JOB_ID": "12"}, {**TASK, "SLURM_ARRAY_TASK_COUNT": "1"}],
)
def test_one_job_trains_it_once(run: RunDir, environ: dict[str, str]) -> None:
    assert not [*array_notes(run, environ)]


def test_a_run_of_a_config_is_a_command_of_its_own(run: RunDir) -> None:
    run.config.write_text("name: x\n")
    assert not [*array_notes(run, TASK)]


def test_the_points_of_a_sweep_are_not_the_same(tmp_path: Path) -> None:
    (tmp_path / "nets.py").touch()
    made = make_plan(config(), workdir=str(tmp_path), python="python", for_script=True)
    sweep = SweepPlan(plan=made, points=tuple(SweepPoint({"seed": k}, []) for k in range(2)))
    run = run_of_sweep_script(sweep.to_json(), TASK, tmp_path)
    run.config.unlink(missing_ok=True)
    assert not [*array_notes(run, TASK)]
