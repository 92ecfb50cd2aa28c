"""The run of a rendered script, which its job makes and finds again."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.plan.from_config import make_plan
from hpc_train.supervisor.__main__ import run_of_script
from tests.plan.configs import config

ORIGIN = 1 << 26  # of the first cluster of a federation


@pytest.mark.parametrize(("job", "is_one_run"), [(str(ORIGIN + 7), True), ("7", False)])
def test_a_job_finds_its_run_again_in_another_cluster_of_its_federation(
    tmp_path: Path, job: str, is_one_run: bool
) -> None:
    made = make_plan(config(), workdir=str(tmp_path), python="python", for_script=True)
    environ = {"SLURM_JOB_ID": job}
    first, second = (
        run_of_script(made.to_json(), {**environ, "SLURM_CLUSTER_NAME": name}, tmp_path)
        for name in ("alpha", "beta")
    )
    assert (first.path == second.path) is is_one_run
