"""A resume while the code does not read, or while a cancel is under way."""

from __future__ import annotations

import json
import time
from pathlib import Path

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm
from tests.cli.run_of_yesterday import NETS, project, refused, run, sweep

__all__ = ["project", "run", "sweep"]


def test_a_syntax_error_is_corrected_and_not_changed_back(hpc, project: Path, run: RunDir) -> None:
    (project / "nets.py").write_text(NETS + "print((1)\n")
    line = NETS.count("\n") + 1
    fix = "fix: the file cannot be imported: "
    refused(hpc, "resume x --dry-run", f"nets.py:{line}: '(' was never closed", fix)
    assert "a run keeps" not in hpc("resume", "x").err


def test_a_run_that_is_being_cancelled_is_resumed_once_that_is_done(
    hpc, slurm: Slurm, project: Path
) -> None:
    slurm.says("7|RUNNING|None|N/A")
    run = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    append_event(run.events, Event(time.time(), EventKind.CANCEL_REQUESTED))
    being = "is running as job 7, and is being cancelled: its ranks save first"
    once = f"hpc-train resume {run.run_id} once hpc-train status {run.run_id} says cancelled"
    refused(hpc, "resume x", being, once)
    refused(hpc, "resume x trainer.max_epochs=9", being, once)
