"""A run that was cancelled while its job waited: what its logs and its diagnosis say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm
from tests.cli.run_of_yesterday import project

__all__ = ["project"]


@pytest.fixture
def cancelled(hpc, slurm: Slurm, project: Path) -> RunDir:
    run = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    slurm.says("7|CANCELLED|None|N/A|N/A")
    return run


@pytest.mark.parametrize("words", [[], ["-f"], ["-f", "--all"], ["-f", "--supervisor"]])
def test_its_logs_are_not_waited_for_and_it_is_said_why(
    hpc, cancelled: RunDir, words: list[str]
) -> None:
    """With -f it waited for a file, and ended with 0."""
    said = hpc("logs", "x", *words)
    who = "" if words[1:] else "rank 0 of "
    name = f"{who}x ({cancelled.run_id})"
    assert said.err.splitlines() == [
        f"error: {name} has left no log: cancelled: cancelled before it began",
        f"  fix: hpc-train resume {cancelled.run_id} begins it",
    ]
    assert (said.code, said.out) == (1, "")


def test_its_diagnosis_says_it_once_and_of_no_checkpoint(hpc, cancelled: RunDir) -> None:
    said = hpc("diagnose", "x")
    assert said.out.splitlines() == [
        f"x  {cancelled.run_id}  cancelled",
        "failed: it was cancelled before it began",
        f"  fix: hpc-train resume {cancelled.run_id} begins it",
    ]
