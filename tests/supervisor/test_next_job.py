"""A run's next job is not ruled by the variables of sbatch that its batch step has inherited."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.plan.from_config import make_plan
from hpc_train.plan.policy import Decision
from hpc_train.plan.states import Action, RunState
from hpc_train.runs.layout import RunDir
from hpc_train.slurm import control
from hpc_train.slurm.command import CommandResult
from hpc_train.supervisor import resubmit
from hpc_train.supervisor.allocation import Allocation
from tests.plan.configs import config


def test_the_options_of_its_script_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_JOB_NAME", "hugo")
    monkeypatch.setenv("SBATCH_COMMENT", "kept")
    monkeypatch.setattr(control, "jobs_of_scripts", lambda _script: frozenset())
    monkeypatch.setattr(resubmit, "is_federated", lambda _job: False)
    seen: list[dict[str, str]] = []

    def run(_argv: object, *, env: dict[str, str]) -> CommandResult:
        seen.append(env)
        return CommandResult(0, "8\n", "")

    monkeypatch.setattr(control, "run", run)
    job = resubmit.go_on(
        Decision(action=Action.RESUBMIT, reason="it goes on", state=RunState.PENDING),
        Allocation(backend="slurm", job_id="7", nodes=("n1",)),
        RunDir(tmp_path),
        make_plan(config(), workdir=tmp_path, python="python3"),
        requeued_already=False,
        say=print,
        before_resubmit=lambda: None,
    )
    assert job == "8"
    (env,) = seen
    assert "SBATCH_JOB_NAME" not in env
    assert env["SBATCH_COMMENT"] == "kept"
