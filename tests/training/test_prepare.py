from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from hpc_train.plan.world import Launcher
from hpc_train.training.prepare import announce_threads, enter_workdir, threads_are_users
from tests.training.launched import make_plan, make_world


@pytest.mark.parametrize(
    ("launcher", "environ", "in_config", "decided"),
    [
        ("slurm", None, False, False),
        ("slurm", "1", False, True),
        ("torchrun", "1", False, False),  # torchrun's own default, which nobody chose
        ("torchrun", "3", False, True),
        ("torchrun", "1", True, True),
    ],
)
def test_a_number_of_threads_that_somebody_chose_is_kept(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    launcher: Launcher,
    environ: str | None,
    in_config: bool,
    decided: bool,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if environ is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", environ)
    plan = make_plan(tmp_path)
    if in_config:
        shell = dataclasses.replace(plan.shell, variables={"OMP_NUM_THREADS": "1"})
        plan = dataclasses.replace(plan, shell=shell)
    assert threads_are_users(make_world(1, 2, launcher=launcher), plan) is decided


@pytest.mark.parametrize(
    ("launcher", "given", "policy"),
    [("torchrun", None, "PASSIVE"), ("torchrun", "ACTIVE", "ACTIVE"), ("slurm", None, None)],
)
def test_threads_do_not_spin_where_the_machine_is_shared(
    monkeypatch: pytest.MonkeyPatch, launcher: Launcher, given: str | None, policy: str | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    announce_threads(6, make_world(1, 2, launcher=launcher))
    assert os.environ["OMP_NUM_THREADS"] == "6"
    assert os.environ.get("OMP_WAIT_POLICY") == policy
    os.environ.pop("OMP_WAIT_POLICY", None)


def test_relative_paths_of_a_config_mean_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setattr("sys.path", [])
    enter_workdir(make_plan(tmp_path))
    assert Path.cwd() == tmp_path
