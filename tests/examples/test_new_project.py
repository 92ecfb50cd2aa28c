"""The project of `hpc-train init` trains as it is, and passes its own test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "hpc_train.cli"]


def call(argv: list[str], folder: Path) -> str:
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}  # not the user's own
    done = subprocess.run(
        argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_a_new_project_trains_and_passes_its_own_test(tmp_path: Path) -> None:
    call([*COMMAND, "init", "mine"], tmp_path)
    folder = tmp_path / "mine"
    call([*COMMAND, "run", "config.yaml", "trainer.max_epochs=4"], folder)
    status = json.loads(call([*COMMAND, "status", "--json", "--runs-dir", "runs"], folder))
    assert status["state"] == "completed"
    assert status["metrics"]["val_acc"] > 0.8
    call([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], folder)
