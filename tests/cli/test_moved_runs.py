"""Runs, sweeps and projects that were moved, copied or renamed since."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import ended, project, refused, run, saved, sweep

__all__ = ["project", "run", "sweep"]


def test_a_run_that_was_moved_goes_on_where_it_is(hpc, run: RunDir, tmp_path: Path) -> None:
    """Its script and its plan named the folder in which it was made."""
    moved = RunDir(tmp_path / "archive" / "x" / run.run_id)
    moved.path.parent.mkdir(parents=True)
    run.path.rename(moved.path)
    said = hpc("resume", str(moved.path))
    assert said.code == 0, said
    assert f"note: the run was moved from {run.path}, and goes on in {moved.path}" in said.err
    assert str(run.path) not in moved.script.read_text()
    assert f"--run-dir {moved.path}" in moved.script.read_text()
    assert json.loads(moved.plan.read_text())["runs_dir"] == str(tmp_path / "archive")
    ended(moved, "cancelled")
    assert "was moved" not in hpc("resume", str(moved.path), "--dry-run").err


def test_a_copy_of_a_run_goes_on_by_itself(hpc, run: RunDir, tmp_path: Path) -> None:
    copy = RunDir(tmp_path / "copies" / "x" / run.run_id)
    shutil.copytree(run.path, copy.path)
    before = run.script.read_text()
    assert hpc("resume", str(copy.path), "--nodes", "1").code == 0
    assert f"--run-dir {copy.path}" in copy.script.read_text()
    assert run.script.read_text() == before


def test_a_folder_of_runs_with_two_names_is_no_move(hpc, run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run.path.parent.parent)
    said = hpc("resume", str(tmp_path / "link" / "x" / run.run_id), "--dry-run")
    assert (said.code, "was moved" in said.err) == (0, False)


def test_a_run_whose_project_was_renamed_goes_on_with_its_code(
    hpc, run: RunDir, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    renamed = project.with_name(f"{project.name}-renamed")
    project.rename(renamed)
    monkeypatch.chdir(renamed)
    for name in ("SLURM_CONF", "PATH"):  # the commands that stand for Slurm's lie in it
        monkeypatch.setenv(name, os.environ[name].replace(str(project), str(renamed)))
    gone = f"the run's project was in {project}, which is gone"
    code = (renamed / "nets.py").rename(renamed / "other.py")
    for words in (f"resume {run.run_id}", f"resume {run.run_id} --nodes 1", f"test {run.run_id}"):
        message = f"{gone}; in this folder, "
        fix = refused(hpc, words, message, "go to the folder where the project is now")
        assert f"ln -s FOLDER {project}" in fix
    code.rename(renamed / "nets.py")
    said = hpc("resume", run.run_id)
    assert said.code == 0, said
    assert f"{gone}: it goes on with the code of {renamed}" in said.err
    assert "the code is not that of" not in said.err  # the same files, in another folder
    moved = RunDir(renamed / run.path.relative_to(project))
    assert json.loads(moved.plan.read_text())["workdir"] == str(renamed)
    saved(moved, 24)
    assert hpc("test", run.run_id).code == 0


def test_a_sweep_that_was_moved_is_moved_back(hpc, sweep: str, tmp_path: Path) -> None:
    for number in (0, 1):
        ended(RunDir(tmp_path / "runs" / "sw" / f"{sweep}-{number}"), "cancelled")
    (tmp_path / "old").mkdir()
    (tmp_path / "runs" / "sw").rename(tmp_path / "old" / "sw")
    moved = tmp_path / "old" / "sw" / sweep
    fix = refused(hpc, f"resume {moved}", f"was moved from {tmp_path}/runs/sw", "mkdir -p")
    subprocess.run(fix.split("points: ")[1].split(";")[0], shell=True, check=True)
    assert hpc("resume", sweep).code == 0
