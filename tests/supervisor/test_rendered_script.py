"""The run of a rendered script, which its job makes and finds again."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.config.schema import ContainerConfig
from hpc_train.errors import HpcTrainError, SlurmError
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan, ScriptPlan, Shape
from hpc_train.plan.sweep_plan import SweepPlan, SweepPoint
from hpc_train.runs.layout import RunDir
from hpc_train.runs.log_tail import last_words
from hpc_train.slurm.jobs import JobDetails
from hpc_train.supervisor import rendered_elsewhere
from hpc_train.supervisor.__main__ import run_of_script, run_of_sweep_script
from hpc_train.supervisor.allocation import Allocation
from tests.plan.configs import config

ORIGIN = 1 << 26  # of the first cluster of a federation


@pytest.fixture(autouse=True)
def told_of_job(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What scontrol tells of a job; nothing at first."""
    fields: dict[str, str] = {}

    def details(job_id: str, *, timeout_s: float) -> JobDetails:
        if not fields:
            raise SlurmError(f"scontrol does not know job {job_id}")
        return JobDetails(fields)

    monkeypatch.setattr(rendered_elsewhere, "job_details", details)
    return fields


def planned(project: Path) -> Plan:
    (project / "nets.py").touch()
    return make_plan(config(), workdir=str(project), python="python", for_script=True)


@pytest.mark.parametrize(("job", "is_one_run"), [(str(ORIGIN + 7), True), ("7", False)])
def test_a_job_finds_its_run_again_in_another_cluster_of_its_federation(
    tmp_path: Path, job: str, is_one_run: bool
) -> None:
    made = planned(tmp_path)
    environ = {"SLURM_JOB_ID": job}
    first, second = (
        run_of_script(made.to_json(), {**environ, "SLURM_CLUSTER_NAME": name}, tmp_path)
        for name in ("alpha", "beta")
    )
    assert (first.path == second.path) is is_one_run


def test_a_job_that_ends_before_its_first_attempt_leaves_its_log_with_the_run(
    tmp_path: Path,
) -> None:
    """sbatch has put it where it was typed, `slurm-JOB.log`, of which the run knew nothing."""
    made = planned(tmp_path)
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1", "SLURM_CLUSTER_NAME": "c"}
    argv = [sys.executable, "-m", "hpc_train.supervisor", "--plan", "/dev/stdin"]
    for _ in range(2):  # also once more, after a requeue
        with (tmp_path / "slurm-7.log").open("a") as log:
            done = subprocess.run(
                argv,
                input=made.to_json(),
                text=True,
                stdout=log,
                stderr=log,
                cwd=tmp_path,
                env={**os.environ, **job},
            )
        assert done.returncode == 3
    (folder,) = tmp_path.glob("runs/*/c-7")
    words = last_words(RunDir(folder).job_log("7"))
    assert f"the plan wants {made.shape.nodes} nodes and job 7 has 1 (n1)" in words[-2]
    assert words[-1].startswith("fix: ask for")


@pytest.mark.parametrize("swept", [False, True])
def test_a_rendered_script_of_a_script_elsewhere_says_where_to_submit_it_and_makes_nothing(
    tmp_path: Path, swept: bool
) -> None:
    made = dataclasses.replace(
        make_plan(config(), workdir=str(tmp_path), python="python", for_script=True),
        script=ScriptPlan("train.py", []),
    )
    environ = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0"}
    text = SweepPlan(plan=made, points=(SweepPoint({}, []),)).to_json() if swept else made.to_json()
    find = run_of_sweep_script if swept else run_of_script
    with pytest.raises(HpcTrainError, match=f"there is no train.py in {tmp_path}") as caught:
        find(text, environ, tmp_path)
    assert "in the folder that it was rendered in: cd FOLDER && sbatch" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").touch()
    with pytest.raises(HpcTrainError) as caught:
        find(text, environ, tmp_path)
    assert f"cd {tmp_path}/project && sbatch FILE" in caught.value.hint


@pytest.mark.parametrize("swept", [False, True])
def test_a_rendered_script_of_classes_elsewhere_says_where_to_submit_it_and_makes_nothing(
    tmp_path: Path, swept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run was made there, and every resume of it failed there again."""
    project = tmp_path / "the project"
    project.mkdir()
    made = planned(project)
    environ = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0"}
    made = dataclasses.replace(made, workdir=".")
    text = SweepPlan(plan=made, points=(SweepPoint({}, []),)).to_json() if swept else made.to_json()
    find = run_of_sweep_script if swept else run_of_script
    with pytest.raises(HpcTrainError, match=f"no module nets for nets.Net in {tmp_path}") as caught:
        find(text, environ, tmp_path)
    assert f"cd '{project}' && sbatch FILE" in caught.value.hint
    assert [*tmp_path.iterdir()] == [project]

    (tmp_path / "another").mkdir()
    (tmp_path / "another" / "nets.py").touch()
    with pytest.raises(HpcTrainError) as caught:
        find(text, environ, tmp_path)
    assert "cd FOLDER && sbatch FILE" in caught.value.hint, "either may be meant"

    monkeypatch.syspath_prepend(str(project))  # of the job's environment
    assert find(text, environ, tmp_path).path.is_relative_to(tmp_path / "runs")


@pytest.mark.parametrize("is_script", [False, True])
@pytest.mark.parametrize("swept", [False, True])
def test_where_slurm_tells_the_script_the_fix_names_it_and_its_folder(
    tmp_path: Path, told_of_job: dict[str, str], swept: bool, is_script: bool
) -> None:
    project, here = tmp_path / "the project", tmp_path / "here"
    here.mkdir()
    project.mkdir()
    made = dataclasses.replace(planned(project), workdir=".")
    if is_script:
        made = dataclasses.replace(made, script=ScriptPlan("train.py", []))
        (project / "train.py").touch()
    environ = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0"}
    text = SweepPlan(plan=made, points=(SweepPoint({}, []),)).to_json() if swept else made.to_json()
    find = run_of_sweep_script if swept else run_of_script

    def fix(command: str) -> str:
        told_of_job.update(Command=command, WorkDir=str(here))
        with pytest.raises(HpcTrainError) as caught:
            find(text, environ, here)
        return caught.value.hint.partition("rendered in: ")[2].partition(";")[0]

    (project / "my job.sbatch").touch()
    whole = f"cd '{project}' && sbatch 'my job.sbatch'"
    assert fix(f"{here}/../the project/my job.sbatch") == whole
    assert fix("../the project/my job.sbatch") == whole
    (tmp_path / "job.sbatch").touch()  # rendered in another folder than that of the code
    assert fix(str(tmp_path / "job.sbatch")) == f"cd FOLDER && sbatch {tmp_path}/job.sbatch"
    assert fix(f"{project}/gone.sbatch") == "cd FOLDER && sbatch FILE"
    assert fix("(null)") == "cd FOLDER && sbatch FILE"  # of sbatch < job.sbatch


def test_the_classes_of_a_container_are_not_looked_for_outside(tmp_path: Path) -> None:
    made = make_plan(config(), workdir=str(tmp_path), python="python", for_script=True)
    made = dataclasses.replace(made, container=ContainerConfig(image="a.sif"))
    environ = {"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "c"}
    assert run_of_script(made.to_json(), environ, tmp_path).run_id == "c-7"


def test_a_script_without_a_job_says_what_makes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made = planned(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    run_of_script(made.to_json(), {}, tmp_path)
    assert "sbatch" not in capfd.readouterr().err, "there is no Slurm"
    (tmp_path / "sbatch").touch(mode=0o755)
    run_of_script(made.to_json(), {}, tmp_path)
    assert "this is no job of Slurm's, and trains on this machine" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("nodes", "spares", "more", "said"),
    [
        (2, 0, {}, "1 of the job's 2 nodes; to use it plan with --nodes 2"),
        (2, 1, {}, ""),
        (1, 0, {"SLURM_GPUS_ON_NODE": "2", "SLURM_NTASKS_PER_NODE": "2"}, ""),
        (1, 0, {"SLURM_NTASKS_PER_NODE": "4"}, "room for 4 ranks a node, where 2 start; to use it"),
        (2, 0, {"SLURM_GPUS_ON_NODE": "8"}, "2 start; to use it plan with --nodes 2 --gpus 8"),
        (1, 0, {"SLURM_GPUS_ON_NODE": "gpu:8"}, ""),
    ],
)
def test_what_a_job_has_beyond_the_plan_is_said(
    nodes: int, spares: int, more: dict[str, str], said: str
) -> None:
    names = tuple(f"n{number}" for number in range(nodes))
    job = Allocation(backend="slurm", job_id="7", nodes=names)
    shape = Shape(nodes=1, ranks_per_node=2, gpus_per_node=2, spares=spares)
    unused = job.unused(more, shape)
    assert said in unused
    assert bool(unused) is bool(said)
    assert Allocation(backend="local", job_id="-", nodes=names).unused(more, shape) == ""
    of_cpus = Shape(nodes=nodes, ranks_per_node=2, gpus_per_node=0)
    assert job.unused({"SLURM_GPUS_ON_NODE": "8"}, of_cpus) == "", "GPUs are not asked for"
