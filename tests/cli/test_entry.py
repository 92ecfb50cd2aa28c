"""The console script, as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import DIGITS


def finished_run(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "runs" / "digits" / "id-1")
    run.path.mkdir(parents=True)
    run.plan.write_text("{}")
    append_event(run.events, Event(1.0, EventKind.SUBMITTED, {"job_id": "1", "backend": "slurm"}))
    data = {"state": "completed", "reason": "all done"}
    append_event(run.events, Event(2.0, EventKind.RUN_ENDED, data))


@pytest.mark.parametrize("words", ["list", f"config show {DIGITS}"])
def test_a_reader_that_has_enough_is_no_error(tmp_path, words):
    finished_run(tmp_path)
    command = f"{sys.executable} -m hpc_train.cli {words} | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_is_the_command_as_well() -> None:
    command = [sys.executable, "-m", "hpc_train", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "hpc-train")
