"""A project that was copied as a whole (`cp -r`), with its runs: whose code a resume takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm
from tests.cli.run_of_yesterday import ended, project, run

__all__ = ["project", "run"]


@pytest.fixture
def copy(project: Path, run: RunDir, monkeypatch: pytest.MonkeyPatch, slurm: Slurm) -> RunDir:
    """The run in a copy of its project, which one is in."""
    there = project.with_name(f"{project.name}-trial")
    shutil.copytree(project, there, symlinks=True)
    monkeypatch.chdir(there)
    return RunDir(there / run.path.relative_to(project))


def workdir_of(run: RunDir) -> str:
    return str(json.loads(run.plan.read_text())["workdir"])


def test_a_run_of_a_copied_project_goes_on_with_the_code_of_the_copy(
    hpc, copy: RunDir, run: RunDir, project: Path
) -> None:
    here = Path.cwd()
    (here / "nets.py").write_text((here / "nets.py").read_text() + "\nMENDED = 1\n")
    said = hpc("resume", str(copy.path))
    assert said.code == 0, said
    goes_on = f"goes on in {copy.path} with the code of {here}\n"
    assert f"note: this is a copy of {run.path}, and {goes_on}" in said.err
    assert "the code is not that of the first attempt: nets.py\n" in said.err
    assert (workdir_of(copy), workdir_of(run)) == (str(here), str(project))
    ended(copy, "cancelled")
    assert "a copy of" not in hpc("resume", str(copy.path), "--dry-run").err


def test_an_error_in_the_copy_of_the_code_is_told_and_the_first_folders_is_not_taken(
    hpc, copy: RunDir
) -> None:
    (Path.cwd() / "nets.py").write_text("class Net(:\n")
    said = hpc("resume", str(copy.path))
    assert (said.code, f"{Path.cwd()}/nets.py" in said.err or "nets.py:1" in said.err) == (3, True)


@pytest.mark.parametrize("lacks", ["nets.py", "runs alone"])
def test_without_the_classes_beside_it_a_copy_goes_on_with_the_first_folders(
    hpc, copy: RunDir, run: RunDir, project: Path, lacks: str
) -> None:
    (Path.cwd() / "nets.py").unlink()
    if lacks == "runs alone":
        (Path.cwd() / "cfg.yaml").unlink()
    said = hpc("resume", str(copy.path))
    assert said.code == 0, said
    assert f"note: this is a copy of {run.path}, and goes on in {copy.path}" in said.err
    assert f" with the code of {project}\n" in said.err
    assert workdir_of(copy) == str(project)


def test_a_script_of_a_copied_project_is_that_of_the_copy(
    hpc, project: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "train.py").write_text("print(1)\n")
    said = hpc("submit", "train.py", "--time", "0:10:00", "--json")
    assert said.code == 0, said
    first = RunDir(Path(json.loads(said.out)["run_dir"]))
    ended(first, "cancelled")
    there = project.with_name(f"{project.name}-trial")
    shutil.copytree(project, there, symlinks=True)
    monkeypatch.chdir(there)
    said = hpc("resume", str(there / first.path.relative_to(project)), "--dry-run")
    assert f" with the code of {there}\n" in said.err, said
