"""SBATCH_* of a shell's start-up file wins over a script's lines (sbatch(1)): not over a config."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.slurm.inherit import for_new_job, unused_variables
from tests.cluster import Cluster
from tests.faults.running import CONFIG
from tests.faults.test_order import LONG, training
from tests.faults.test_sweeps import Site


@pytest.mark.parametrize(
    ("variable", "options", "kept"),
    [
        ("SBATCH_TIMELIMIT", ["time"], False),
        ("SBATCH_TIMELIMIT", ["partition"], True),
        ("SBATCH_PARTITION", ["partition", "time"], False),
        ("SBATCH_PARTITION", [], True),
        ("SBATCH_ACCOUNT", ["partition"], True),
        ("SBATCH_JOB_NAME", ["job-name"], False),
        ("SBATCH_MEM_PER_CPU", ["mem"], False),
        ("SBATCH_MEM_PER_NODE", ["mem-per-gpu"], False),
        ("SBATCH_GRES", ["gpus-per-node"], False),
        ("SBATCH_NO_REQUEUE", ["requeue"], False),
        ("SBATCH_WAIT", [], False),
        ("SBATCH_ARRAY_INX", [], False),
        ("SBATCH_CLUSTERS", ["partition"], True),
        ("SLURM_CONF", ["conf"], True),
        ("TIMELIMIT", ["time"], True),
    ],
)
def test_a_variable_of_an_option_that_the_script_has_is_left_out(
    variable: str, options: list[str], kept: bool
) -> None:
    environ = {variable: "x", "HOME": "/h"}
    assert (variable in for_new_job(environ, options)) == kept
    assert for_new_job(environ, options)["HOME"] == "/h"
    assert unused_variables(environ, options) == ([] if kept else [f"{variable}=x"])


@pytest.mark.slurm
def test_a_config_wins_over_the_shells_variables_and_they_are_noted(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    site = Site(slurm_cluster, tmp_path)
    site.env |= {
        "SBATCH_TIMELIMIT": "3",
        "SBATCH_JOB_NAME": "hugo",
        "SBATCH_WAIT": "1",
        "SBATCH_COMMENT": "kept",
    }
    site.env["SBATCH_OPEN_MODE"] = "truncate"
    done = site.hpc("submit", str(CONFIG), f"runs_dir={tmp_path / 'runs'}", LONG, "slurm.nodes=1",
                    "slurm.time=0:08:00")  # fmt: skip
    unused = "SBATCH_JOB_NAME=hugo, SBATCH_OPEN_MODE=truncate, SBATCH_TIMELIMIT=3, SBATCH_WAIT=1"
    assert f"note: {unused} of your shell: not used, as the config says that" in done.stderr
    (run_dir,) = (tmp_path / "runs").glob("*/2*")
    said = site.json("status", run_dir.name)
    first = training(site, said)
    assert slurm_cluster.job(first.job_id)["TimeLimit"] == "00:08:00"
    assert slurm_cluster.job(first.job_id)["JobName"] == said["name"]
    first.wait_step()  # cancelled as it starts, a job leaves no end in the run's history
    site.hpc("cancel", run_dir.name)
    assert first.wait_end() == "cancelled"
    again = site.json("resume", run_dir.name)["job_id"]
    assert slurm_cluster.job(again)["TimeLimit"] == "00:08:00"
    site.hpc("cancel", run_dir.name)
