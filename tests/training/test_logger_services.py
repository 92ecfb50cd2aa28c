"""W&B and MLflow themselves, without a network: all attempts of a run are one run of theirs.

They lie in a folder of their own, see tests/logger_services.txt.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(sys.prefix, "logger-services")
ATTEMPT = """
import json, sys
from pathlib import Path
from hpc_train.runs.layout import RunDir
from hpc_train.training.loggers import make_loggers

run = RunDir(Path(sys.argv[1]))
first = int(sys.argv[2])
(logger,) = make_loggers([json.loads(sys.argv[3])], run, first)
for step in range(first, first + 3):
    logger.log_metrics({"loss": 1.0 / (step + 1)}, step=step)
logger.finalize("failed" if first == 0 else "success")
print(logger.version)
"""

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"make test installs wandb and mlflow-skinny into {FOLDER}"
)


def attempt(run: Path, first: int, kind: dict[str, Any], rank: int = 0) -> str:
    """The run's id as the logger of an attempt that begins at step FIRST tells it."""
    environ = {
        **os.environ,
        "PYTHONPATH": str(FOLDER),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "RANK": str(rank),
        "HOME": str(run.parent),
    }
    command = [sys.executable, "-c", ATTEMPT, str(run), str(first), json.dumps(kind)]
    done = subprocess.run(
        command, env=environ, cwd=run.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_the_attempts_of_a_run_are_one_run_at_mlflow(tmp_path: Path, attempts: int) -> None:
    run = tmp_path / "digits" / "20260101-abc"
    run.mkdir(parents=True)
    kind = {
        "class_path": "pytorch_lightning.loggers.MLFlowLogger",
        "init_args": {"experiment_name": "digits"},
    }
    ids = {attempt(run, 3 * number, kind) for number in range(attempts)}
    assert len(ids) == 1
    (losses,) = (run / "metrics").glob("*/*/metrics/loss")
    assert losses.parents[1].name == next(iter(ids))
    steps = [int(line.split()[2]) for line in losses.read_text().splitlines()]
    assert steps == list(range(3 * attempts))
    (name,) = (run / "metrics").glob("*/*/tags/mlflow.runName")
    assert name.read_text() == "20260101-abc"


def test_another_rank_makes_no_run_at_mlflow(tmp_path: Path) -> None:
    run = tmp_path / "20260101-abc"
    run.mkdir()
    code = ATTEMPT.partition("for step")[0]
    kind = {"class_path": "pytorch_lightning.loggers.MLFlowLogger", "init_args": {}}
    environ = {**os.environ, "PYTHONPATH": str(FOLDER), "MLFLOW_ALLOW_FILE_STORE": "true"}
    command = [sys.executable, "-c", code, str(run), "0", json.dumps(kind)]
    subprocess.run(command, env={**environ, "RANK": "1"}, cwd=tmp_path, check=True)
    assert list(run.rglob("mlflow-run-*")) == []


def test_the_attempts_of_a_run_are_one_run_at_weights_and_biases(tmp_path: Path) -> None:
    run = tmp_path / "digits" / "20260101-abc"
    run.mkdir(parents=True)
    kind = {
        "class_path": "pytorch_lightning.loggers.WandbLogger",
        "init_args": {"project": "digits"},
    }
    assert [attempt(run, first, kind) for first in (0, 3)] == ["20260101-abc"] * 2
    files = {file.name for file in run.rglob("run-*.wandb")}
    assert files == {"run-20260101-abc.wandb"}
