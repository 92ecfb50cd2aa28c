"""Runs, sweeps and projects that were moved, copied or renamed since."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.left_project import how_it_was_left
from tests.cli.run_of_yesterday import ended, project, refused, run, saved, sweep

LR = "class_path: nets.Net, init_args: {lr: 0.5}"
__all__ = ["project", "run", "sweep"]


def renamed_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    renamed = project.with_name(f"{project.name}-renamed")
    project.rename(renamed)
    monkeypatch.chdir(renamed)
    for name in ("SLURM_CONF", "PATH"):  # the commands that stand for Slurm's lie in it
        monkeypatch.setenv(name, os.environ[name].replace(str(project), str(renamed)))
    return renamed


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
    renamed = renamed_project(project, monkeypatch)
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


def test_a_project_that_was_moved_out_of_its_folder_goes_on_where_it_is(
    hpc, run: RunDir, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mv * ../new` leaves the folder, and in it what is hidden."""
    renamed = renamed_project(project, monkeypatch)
    (project / ".git").mkdir(parents=True)
    gone = f"the run's project was in {project}, which is empty now"
    (renamed / "sub").mkdir()
    monkeypatch.chdir(renamed / "sub")
    where = renamed / run.path.relative_to(project)
    fix = refused(hpc, f"resume {where}", f"{gone}; in this folder, ", "go to the folder where")
    assert "ln -s" not in fix
    monkeypatch.chdir(renamed)
    for word in ("x", run.run_id, "latest"):
        assert f"folder     {where}\n" in hpc("status", word).out
        said = hpc("resume", word, "--dry-run")
        assert (said.code, f"{gone}: it goes on with the code of {renamed}" in said.err) == (
            0,
            True,
        )
        assert "the code is not that of" not in said.err
    assert hpc("resume", "x").code == 0
    assert json.loads((where / "plan.json").read_text())["workdir"] == str(renamed)
    ended(RunDir(where), "cancelled")
    assert "which is empty now" not in hpc("resume", "x", "--dry-run").err


def test_a_folder_that_has_files_or_whose_run_stands_is_no_project_that_was_moved(
    hpc, run: RunDir, project: Path, tmp_path: Path
) -> None:
    moved = RunDir(tmp_path / "archive" / "x" / run.run_id)
    moved.path.parent.mkdir(parents=True)
    shutil.copytree(run.path, moved.path, symlinks=True)
    plan = Plan.from_json(run.plan.read_text())
    assert how_it_was_left(run, plan) == how_it_was_left(moved, plan) == ""
    (tmp_path / "empty").mkdir()
    elsewhere = dataclasses.replace(plan, workdir=str(tmp_path / "empty"))
    assert how_it_was_left(run, elsewhere) == ""
    shutil.rmtree(run.path)
    assert how_it_was_left(moved, plan) == ""
    assert how_it_was_left(moved, elsewhere) == "empty now"


def test_a_run_of_a_renamed_project_is_compared_with_what_is_there_now(
    hpc, project: Path, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file of the code had changed, and the config was not compared: it is not there."""
    renamed = renamed_project(project, monkeypatch)
    said = hpc("diff", "x")
    assert (said.code, said.out, "config: " in said.err) == (0, "nothing differs\n", False)
    config = renamed / "cfg.yaml"
    config.write_text(config.read_text().replace("{class_path: nets.Net}", f"{{{LR}}}"))
    (renamed / "nets.py").write_text((renamed / "nets.py").read_text() + "\n")
    for _ in ("before and after a resume", "which names the folder of now in the plan"):
        said = hpc("diff", "x")
        assert said.out.splitlines() == [
            "code      nets.py",
            "config    model.init_args.lr: (absent) -> 0.5",
        ]
        assert "config: " not in said.err
        assert hpc("resume", "x").code == 0
        ended(RunDir(renamed / run.path.relative_to(project)), "cancelled")
    said = hpc("resume", "x", "--dry-run").err
    assert "note: cfg.yaml has changed since the submission: model" in said
    assert "with the new: hpc-train submit cfg.yaml init_from=" in said


def test_code_that_is_gone_is_not_told_as_changed(
    hpc, project: Path, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = renamed_project(project, monkeypatch)
    (renamed / "sub").mkdir()
    monkeypatch.chdir(renamed / "sub")
    said = hpc("diff", str(renamed / "runs/x"))
    assert said.out == "nothing differs\n"
    gone = f"code: the project was in {project}, which is gone; type it in the folder where the"
    assert f"not compared: {gone} project is now\n" in said.err


def test_a_sweep_that_was_moved_is_moved_back(hpc, sweep: str, tmp_path: Path) -> None:
    for number in (0, 1):
        ended(RunDir(tmp_path / "runs" / "sw" / f"{sweep}-{number}"), "cancelled")
    (tmp_path / "old").mkdir()
    (tmp_path / "runs" / "sw").rename(tmp_path / "old" / "sw")
    moved = tmp_path / "old" / "sw" / sweep
    fix = refused(hpc, f"resume {moved}", f"was moved from {tmp_path}/runs/sw", "mkdir -p")
    subprocess.run(fix.split("points: ")[1].split(";")[0], shell=True, check=True)
    assert hpc("resume", sweep).code == 0
