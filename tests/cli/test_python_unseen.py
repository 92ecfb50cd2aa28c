"""A job whose node has not the Python, or the project, that it was submitted with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.plan.states import NO_FOLDER
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm
from tests.cli.test_resume_notes import CONFIG, NETS


@pytest.fixture
def began(hpc, taken: Slurm, tmp_path: Path):
    """`began(WORDS, python=PATH)` is a run whose job has begun on node5, and has failed."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)

    def begin(*words: str, python: str = "") -> RunDir:
        taken.says("7|PENDING|Priority|N/A|N/A")
        said = hpc("submit", "cfg.yaml", *words, "--json")
        run = RunDir(Path(json.loads(said.out)["run_dir"]))
        script = run.script.read_text()
        if python:
            script = script.replace(sys.executable, python)
        environ = {**os.environ, "SLURMD_NODENAME": "node5"}
        with run.job_log("7").open("w") as log:
            done = subprocess.run(
                ["bash"], input=script, stdout=log, stderr=log, env=environ, text=True, check=False
            )
        assert done.returncode == 127
        taken.says("7|FAILED|NonZeroExitCode|N/A|N/A")
        return run

    return begin


@pytest.mark.parametrize("more", [(), ("env.variables.A=1",)])
def test_a_python_that_the_node_does_not_see_is_told_with_what_to_do(
    hpc, began, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """It was bash's line 29, and a resume that would have failed the same way."""
    python = str(tmp_path / "login node" / "bin" / "python")
    run = began(*more, python=python.replace(" ", ""))
    said = re.sub(r"\s+", " ", hpc("status", "x").out)
    what = f"node5 does not see the Python of this job, {python.replace(' ', '')}"
    assert f"failed: the job ended before its training began: hpc-train: error: {what}" in said
    fix = "submit from an environment that all nodes see, on the shared file system"
    assert f"fix: {fix}" in said
    again = f"hpc-train submit cfg.yaml{' ' if more else ''}{' '.join(more)}"
    keeps = f"hpc-train resume {run.run_id} keeps the Python"
    assert f"go on from such an environment: {again}; {keeps}" in said
    found = json.loads(hpc("diagnose", "x", "--json").out)
    assert (found["name"], found["fix"]) == ("refused_at_start", fix)
    assert found["cause"] == f"the job ended before its training began: {what}"


def test_a_python_that_env_was_to_bring_is_told_as_that(hpc, began, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    run = began("env.setup=['activate=1', 'PATH=/nowhere']")
    said = re.sub(r"\s+", " ", hpc("status", "x").out)
    assert "error: node5 does not see the Python of this job, python; fix: what env acti" in said
    resume = f"hpc-train resume {run.run_id} 'env.setup="
    assert f"go on without env.setup: {resume}[]'; with another: {resume}[LINE]'" in said
    plan = json.loads(hpc("resume", run.run_id, "env.setup=[]", "--dry-run", "--json").out)["plan"]
    assert plan["shell"]["python"] == sys.executable, "no env brings another"


@pytest.mark.parametrize("is_here", [True, False])
def test_a_project_that_the_nodes_do_not_see_is_submitted_from_a_copy(
    hpc, taken: Slurm, tmp_path: Path, is_here: bool
) -> None:
    """It was told to bring back what never was there, and a resume, which keeps that folder."""
    project = tmp_path / "local disk"
    project.mkdir()
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    taken.says("7|PENDING|Priority|N/A|N/A")
    run = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    words = f"hpc-train: error: {NO_FOLDER} {project} is not there on node5\n  fix: copy it\n"
    run.job_log("7").write_text(words)
    taken.says("7|FAILED|NonZeroExitCode|N/A|N/A")
    if not is_here:
        project.rmdir()
    said = re.sub(r"\s+", " ", hpc("status", "x").out)
    copied = "go on in a copy of the project that all nodes see: hpc-train submit cfg.yaml; hpc-tr"
    assert (copied in said) is is_here
    assert f"hpc-train resume {run.run_id}{' keeps the folder' if is_here else ''}" in said
