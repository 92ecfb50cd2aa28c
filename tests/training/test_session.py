"""Raw loops with a session: the same guarantees as with Lightning, by real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from hpc_train.errors import ConfigError
from hpc_train.runs.ranks import read_exits
from hpc_train.training.session import Session
from tests.ledger import compare, compare_samples
from tests.training.ranks import Run

JOB = {"module": "tests.training.session_job", "epochs": 3}
SPECS: dict[str, dict[str, Any]] = {
    "DDP": {},
    "accumulation and data workers": {"accumulate": 2, "workers": 2},
    "a stream": {"data": "stream", "samples": 72},
    "FSDP2": {"data": "fsdp"},
    "a layer that thaws": {"thaw": True},
    "statistics of each rank's own": {"ddp": {"broadcast_buffers": False}},
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_raw_loop_that_is_stopped_goes_on_exactly(spec: dict[str, Any], tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", **JOB, **spec)
    assert undisturbed.run(3) == [0] * 3
    steps_an_epoch = max(entry.step for entry in undisturbed.ledger if entry.epoch == 0)
    run = Run(tmp_path / "run", **JOB, **spec)
    for step in (1, 2, steps_an_epoch, 2 * steps_an_epoch - 1):
        assert run.run(3, f"stop@step={step}:rank=1") == [75] * 3
        assert f"step-{step:09d}" in run.checkpoints
    assert run.run(3) == [0] * 3
    comparison = compare(undisturbed.ledger, run.ledger)
    assert comparison.problems == []
    assert comparison.retaken == 0
    assert comparison.steps == 3 * steps_an_epoch
    for name in ("buffers-0.pt", "buffers-2.pt"):
        expected, got = torch.load(undisturbed.path / name), torch.load(run.path / name)
        assert all(torch.equal(expected[key], got[key]) for key in expected)


def test_a_killed_rank_and_a_late_signal_cost_only_what_was_not_saved(tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", **JOB)
    assert undisturbed.run(3) == [0] * 3
    run = Run(tmp_path / "run", **JOB, checkpoint={"every_n_steps": 2})
    assert run.run(3, "kill@step=5:rank=1")[1] == -signal.SIGKILL
    ranks = run.start(3, step_s=0.05)
    ranks.wait_for_step(8)
    ranks.send(signal.SIGUSR1, 1)
    time.sleep(0.3)
    with suppress(ProcessLookupError):  # it may have saved and left before
        ranks.send(signal.SIGUSR1, 0)
    assert ranks.wait() == [75] * 3
    assert run.run(3) == [0] * 3
    assert compare(undisturbed.ledger, run.ledger).problems == []


@pytest.mark.parametrize("data", ["map", "fsdp"])
def test_another_number_of_ranks_goes_on_with_the_same_samples(data: str, tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", **JOB, data=data)
    assert undisturbed.run(2) == [0, 0]
    run = Run(tmp_path / "run", **JOB, data=data)
    assert run.run(4, "stop@step=4") == [75] * 4
    assert run.run(1 if data == "map" else 2, "stop@step=9") == [75] * (1 if data == "map" else 2)
    assert run.run(2) == [0, 0]
    assert compare_samples(undisturbed.ledger, run.ledger).problems == []


def test_a_stop_in_a_long_evaluation_leaves_and_evaluates_anew(tmp_path: Path) -> None:
    undisturbed = Run(tmp_path / "undisturbed", **JOB)
    assert undisturbed.run(3) == [0] * 3
    run = Run(tmp_path / "run", **JOB)
    assert run.run(3, "stop@validate=2:rank=0", val_batch_s=0.5) == [75] * 3
    assert run.checkpoints == ["step-000000006"]
    assert run.run(3) == [0] * 3
    assert compare(undisturbed.ledger, run.ledger).problems == []


def test_each_rank_says_how_it_ended(tmp_path: Path) -> None:
    run = Run(tmp_path, **JOB)
    assert run.run(2, "stop@step=3:rank=0") == [75, 75]
    records = read_exits(run.dir.attempt(0))
    assert [(item.code, item.kind, item.cause, item.step) for item in records] == [
        (75, "saved", "SIGTERM", 3)
    ] * 2


def test_without_a_run_directory_there_is_no_session() -> None:
    with pytest.raises(ConfigError, match="no run directory"):
        Session.open(global_batch_size=8, environ={})


def test_the_example_is_stopped_and_goes_on(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "hpc_train.examples.raw_ddp",
        str(tmp_path / "run"),
        "--epochs",
        "2",
    ]
    environment = {**os.environ, "HPC_TRAIN_FAULTS": "stop@step=20:attempt=0"}
    first = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert first.returncode == 75, first.stderr
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert second.returncode == 0, second.stderr
    assert "epoch 1" in second.stdout
