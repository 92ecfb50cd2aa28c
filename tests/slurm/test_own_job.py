"""A job of Slurm's that has no room for the ranks: refused before a run is made in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.errors import CheckError
from hpc_train.plan.from_config import make_plan
from hpc_train.slurm.own_job import check_own_job
from tests.cluster import Cluster
from tests.e2e.conftest import DIGITS
from tests.plan.configs import config
from tests.slurm.job_scripts import rendered_script, train_script
from tests.slurm.test_own_step import proc

# What scontrol says of jobs, with spaces in front of names that are looked for.
NO_GPUS = "JobId=7 OverSubscribe=OK TRES=cpu=8,mem=2000M,node=1,billing=1"
WITH_GPUS = f"{NO_GPUS},gres/gpu=2 TresPerNode=gres:gpu:2"


def looked(
    accelerator: str = "cpu",
    *,
    cpus: int | None = None,
    processes: Path = Path("/proc"),
    is_rendered: bool = True,
    **environ: str,
) -> None:
    slurm = {"nodes": 2, "gpus_per_node": 4, "cpus_per_gpu": cpus}
    made = make_plan(
        config(trainer={"accelerator": accelerator, "max_epochs": 1}, slurm=slurm),
        workdir=Path("/x"),
        python="python",
        for_script=True,
    )
    check_own_job({"SLURM_JOB_ID": "7", **environ}, made, processes, is_rendered=is_rendered)


@pytest.mark.parametrize(
    ("cpus", "environ"),
    [
        (None, {"SLURM_JOB_CPUS_PER_NODE": "4(x2)"}),
        (None, {"SLURM_JOB_CPUS_PER_NODE": "2,4(x2)"}),  # a spare one is too small
        (2, {"SLURM_JOB_CPUS_PER_NODE": "8,72"}),
        (2, {"SLURM_JOB_CPUS_PER_NODE": "4(x2)", "SLURM_OVERCOMMIT": "1"}),
        (2, {"SLURM_JOB_CPUS_PER_NODE": "4", "SLURM_HET_SIZE": "2"}),
        (2, {}),
    ],
)
def test_a_job_that_may_have_room_is_not_refused(cpus: int | None, environ: dict[str, str]) -> None:
    looked(cpus=cpus, **environ)


@pytest.mark.parametrize(
    ("cpus", "there", "needed", "fix"),
    [
        (None, "1(x2)", 4, "salloc --nodes=2 --ntasks-per-node=4,"),
        (None, "4,3", 4, "--ntasks-per-node=4,"),
        (2, "4(x2)", 8, "--ntasks-per-node=4 --cpus-per-task=2,"),
    ],
)
def test_a_job_with_too_few_cpus_is_refused(
    cpus: int | None, there: str, needed: int, fix: str
) -> None:
    has = {"4,3": "4 and 3"}.get(there, there[0])
    said = f"4 ranks a node need {needed} CPUs, and job 7 has {has} a node"
    with pytest.raises(CheckError) as caught:
        looked(cpus=cpus, SLURM_JOB_CPUS_PER_NODE=there)
    assert caught.value.message == said
    assert fix in caught.value.hint


@pytest.mark.parametrize(
    ("there", "environ", "said", "fix"),
    [
        (
            "1(x2)",
            {"SLURM_NTASKS_PER_NODE": "1"},
            "4 ranks a node need 8 CPUs, and job 7 has 1 a node",
            "sbatch it without --ntasks-per-node, as it has its own",
        ),
        (
            "4(x2)",
            {"SLURM_NTASKS_PER_NODE": "2", "SLURM_CPUS_PER_TASK": "2"},
            "4 ranks a node need 8 CPUs, and job 7 has 4 a node",
            "as it has its own, or render it anew for less: hpc-train render CFG --gpus 2",
        ),
        ("4,2", {"SLURM_NTASKS_PER_NODE": "4", "SLURM_NTASKS": "2"}, "8 CPUs", "without --ntasks,"),
        ("4(x2)", {"SLURM_CPUS_PER_TASK": "1"}, "8 CPUs", "without --cpus-per-task, as"),
        ("4(x2)", {}, "8 CPUs", "sbatch it without options for tasks and CPUs, as it has its own"),
        (
            "8",
            {},
            "the plan wants 2 nodes and job 7 has 1",
            "without --nodes, as it has its own, or render it anew for less: hpc-train render CFG",
        ),
    ],
)
def test_a_rendered_script_with_too_little_is_told_which_option_of_sbatch_to_leave_out(
    tmp_path: Path, there: str, environ: dict[str, str], said: str, fix: str
) -> None:
    batch = proc(tmp_path, "[7.batch]")
    with pytest.raises(CheckError) as caught:
        looked(cpus=2, processes=batch, SLURM_JOB_CPUS_PER_NODE=there, **environ)
    assert said in caught.value.message
    assert fix in caught.value.hint


@pytest.mark.parametrize(
    ("cpus", "there", "asked"),
    [
        (None, "1(x2)", "--nodes=2 --ntasks-per-node=4"),
        (2, "1(x2)", "--nodes=2 --ntasks-per-node=4 --cpus-per-task=2"),
        (None, "4", "--nodes=2 --ntasks-per-node=4"),
    ],
)
def test_a_batch_script_of_ones_own_is_told_what_to_ask_sbatch_for(
    tmp_path: Path, cpus: int | None, there: str, asked: str
) -> None:
    """As `sbatch --wrap "hpc-train run cfg.yaml"`: it has no options that a render wrote."""
    batch = proc(tmp_path, "[7.batch]")
    with pytest.raises(CheckError) as caught:
        looked(cpus=cpus, processes=batch, is_rendered=False, SLURM_JOB_CPUS_PER_NODE=there)
    assert caught.value.hint == (
        f"ask sbatch for {asked}, by options or by #SBATCH lines of the script; or"
        " hpc-train submit, which asks by itself"
    )


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """What scontrol says of the job, and which GPUs sinfo knows."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("SLURM_CONF", raising=False)

    def give(job: str, gpus: str) -> None:
        row = f"train*|infinite|2|1-infinite|8|{gpus}|n[1-2]|N/A"
        for name, said in (("scontrol", job), ("sinfo", row)):
            (tmp_path / name).write_text(f"#!/bin/sh\necho '{said}'\n" if said else "exit 1\n")
            (tmp_path / name).chmod(0o755)

    return give


@pytest.mark.parametrize(
    ("accelerator", "job", "gpus"),
    [
        ("gpu", WITH_GPUS, "gpu:4"),
        ("gpu", NO_GPUS, "(null)"),  # Slurm is told of no GPU at this site
        ("gpu", NO_GPUS.replace("=OK", "=NO"), "gpu:4"),  # --exclusive
        ("gpu", "", "gpu:4"),
        ("auto", NO_GPUS, "gpu:4"),
        ("cpu", NO_GPUS, "gpu:4"),
    ],
)
def test_a_job_that_may_have_gpus_or_needs_none_is_not_refused(
    answers: Callable[[str, str], None], accelerator: str, job: str, gpus: str
) -> None:
    answers(job, gpus)
    looked(accelerator)


def test_a_job_without_the_gpus_that_the_ranks_insist_on_is_refused(
    answers: Callable[[str, str], None],
) -> None:
    answers(NO_GPUS, "gpu:4")
    with pytest.raises(CheckError, match="need 4 GPUs, and job 7 has none") as caught:
        looked("gpu")
    assert "salloc --nodes=2 --ntasks-per-node=4 --gres=gpu:4, with" in caught.value.hint


def test_a_rendered_script_whose_gpus_were_taken_away_is_told_so(
    answers: Callable[[str, str], None], tmp_path: Path
) -> None:
    answers(NO_GPUS, "gpu:4")
    with pytest.raises(CheckError, match="need 4 GPUs, and job 7 has none") as caught:
        looked("gpu", processes=proc(tmp_path, "[StepId=7.batch]"))
    assert caught.value.hint == "sbatch it without --gres, as it has its own"


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("salloc", "words", "code", "said"),
    [
        (["--ntasks=1"], ["trainer.accelerator=cpu"], 3, "2 ranks a node need 2 CPUs, and job"),
        (
            ["--ntasks=2"],
            ["trainer.accelerator=cpu", "--nodes=2"],
            3,
            "the plan wants 2 nodes and job",
        ),
        (["--ntasks=2"], ["trainer.accelerator=gpu"], 3, "2 ranks a node need 2 GPUs, and job"),
        (["--ntasks=1", "--overcommit"], ["trainer.accelerator=cpu"], 0, "completed"),
    ],
)
def test_run_in_an_salloc_is_refused_before_a_run_is_made(
    slurm_cluster: Cluster,
    tmp_path: Path,
    salloc: list[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    shape = ["trainer.max_epochs=1", "--nodes=1", "--gpus=2"]
    train = train_script(tmp_path, "run", str(DIGITS), *shape, *words)
    done = slurm_cluster.command(
        ["salloc", "--nodes=1", *salloc, str(train)], timeout_s=150, check=False
    )
    assert said in done.stdout + done.stderr, done
    assert done.returncode == code
    assert bool(list(tmp_path.glob("runs/*/*"))) is (code == 0)


@pytest.mark.slurm
def test_a_rendered_script_in_a_job_that_is_too_small_is_refused_before_a_run_is_made(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    shape = ["trainer.accelerator=cpu", "--nodes=1", "--gpus=2"]
    script = rendered_script(slurm_cluster, tmp_path, *shape)
    sbatch = ["sbatch", "--wait", "--ntasks-per-node=1", "--ntasks=1", f"--chdir={tmp_path}"]
    done = slurm_cluster.command([*sbatch, str(script)], timeout_s=150, check=False)
    log = next(tmp_path.glob("slurm-*.log")).read_text()
    assert "2 ranks a node need 2 CPUs, and job" in log
    assert (
        "  fix: sbatch it without --ntasks-per-node, as it has its own, or render it anew for"
        " less: hpc-train render CFG --gpus 1\n"
    ) in log
    assert (done.returncode, (tmp_path / "runs").exists()) == (3, False)
