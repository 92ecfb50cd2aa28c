"""Runs and configs that earlier versions wrote are read, and gone on with: docs/stability.md."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hpc_train
from tests.cli.make_golden_run import GOLDEN, PROJECT, PYTHON, RUN

VERSIONS = sorted(path.name for path in GOLDEN.iterdir())
RUN_ID = RUN.rpartition("/")[2]


@pytest.fixture(params=VERSIONS)
def project(request: pytest.FixtureRequest, hpc, tmp_path: Path) -> Path:
    """A project with a run of that version, where it was left."""
    shutil.copytree(GOLDEN / request.param, tmp_path, dirs_exist_ok=True, symlinks=True)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".yaml", ".jsonl", ".sbatch", ".py"):
            text = path.read_text().replace(PROJECT, str(tmp_path))
            text = text.replace(f"{PYTHON}/bin/python", sys.executable)
            path.write_text(text.replace("time.sleep(0.7)", "time.sleep(0)"))
    (tmp_path / "runs" / RUN / "metrics").mkdir(exist_ok=True)  # git keeps no empty folder
    return tmp_path


def test_each_released_version_has_its_run() -> None:
    assert hpc_train.__version__ in VERSIONS, "python -m tests.cli.make_golden_run"


def test_status_has_its_history(hpc, project: Path, without_slurm: None) -> None:
    status = json.loads(hpc("status", "golden", "--json").out)
    assert (status["run"], status["state"]) == (RUN_ID, "cancelled")
    first, second = status["attempts"]
    assert [one["outcome"] for one in (first, second)] == ["cancelled", "cancelled"]
    assert 0 == first["first_step"] < first["last_step"] == second["first_step"]
    assert status["step"] == second["last_step"] < 32


@pytest.mark.parametrize("command", ["report", "diagnose", "checkpoints", "diff"])
def test_every_command_that_reads_a_run_reads_it(
    hpc, project: Path, without_slurm: None, command: str
) -> None:
    more = ["--verify"] if command == "checkpoints" else []
    said = hpc(command, "golden", *more, "--json")
    document = json.loads(said.out)
    assert (said.code, document["schema_version"]) == (3 if command == "diagnose" else 0, 1), said
    if command == "report":
        (run,) = document["runs"]
        assert run["goodput"]["seconds"]["training"] > 1
    if command == "checkpoints":
        assert [one["valid"] for one in document["checkpoints"]] == [True, True]


def test_its_config_means_what_it_meant(hpc, project: Path, without_slurm: None) -> None:
    resolved = project / "runs" / RUN / "config.yaml"
    plans = [
        hpc("submit", str(path), "--dry-run", "-v").out
        for path in (project / "first.yaml", resolved)
    ]
    for plan in plans:
        assert "global_batch_size" in plan
        assert "MY_SETTING" in plan


@pytest.mark.torch
def test_it_is_gone_on_with(hpc, project: Path) -> None:
    before = json.loads(hpc("status", "golden", "--json").out)
    resume = ["resume", "golden", "--cluster", "local", "--wait", "--json"]
    argv = [sys.executable, "-m", "hpc_train.cli", *resume]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    status = json.loads(done.stdout)
    assert (status["state"], status["step"]) == ("completed", 32)
    assert status["attempts"][2]["first_step"] == before["step"]
