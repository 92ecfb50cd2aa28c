"""A training at a controller with real parts, whose clock is moved by hand."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from hpc_train.config.schema import CheckpointConfig
from hpc_train.plan.plan import Batch
from hpc_train.runs.checkpoints import MODEL_FILE
from hpc_train.runs.layout import RunDir
from hpc_train.training.faults import RehearsedFaults, parse_faults
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.resume.agreement import Agreement
from hpc_train.training.resume.checkpoint import list_checkpoints
from hpc_train.training.resume.rank_checkpoint import load_tensors
from hpc_train.training.resume.saving import Saver, Snapshot
from hpc_train.training.resume.step_controller import StepController
from hpc_train.training.resume.stop import StopFlag, Stopped

KEEP = {"keep_last": 99}


def rank_config(checkpoints: Path, **fields: Any) -> RankConfig:
    """A lone rank that saves into `checkpoints`, a folder of that name."""
    assert checkpoints.name == "checkpoints"
    alone: dict[str, Any] = {
        "run": RunDir(checkpoints.parent),
        "attempt": 0,
        "rank": 0,
        "world_size": 1,
        "batch": Batch(1, 1, 1),
        "seed": 0,
        "config_hash": "c",
        "checkpoint": CheckpointConfig(),
    }
    return RankConfig(**{**alone, **fields})


class Held:
    """State whose writing waits for an event; the copy to memory does not."""

    def __init__(self, until: threading.Event) -> None:
        self.until = until

    def __deepcopy__(self, memo: dict[int, Any]) -> Held:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        in_time = self.until.wait(60)
        self.until.set()  # one wait is enough to fail
        assert in_time
        return (str, ())


class Training:
    """A controller with real parts, at a clock that is moved by hand."""

    def __init__(self, folder: Path, faults: str = "", **config: Any) -> None:
        self.now = 5000.0
        self.config = CheckpointConfig(**config)
        self.folder = folder / "checkpoints"
        self.folder.mkdir()
        self.stop = StopFlag()
        self.made: list[int] = []  # steps whose state was asked for
        self.phases: list[str] = []  # in which state was asked for
        self.own: Any = None
        self.step = 0
        made = RehearsedFaults(parse_faults(faults), rank=0, attempt=0)
        rank = rank_config(self.folder, checkpoint=self.config)
        self.saver = Saver(rank, group=None, faults=made)
        attempt = RunDir(folder).attempt(0)
        self.heartbeat = HeartbeatThread(attempt, rank=0, node="n", every_s=1.0, stop=self.stop)
        self.controller = StepController(
            self.config,
            agreement=Agreement(None, self.stop, rank=0, clock=self.clock),
            evaluation=Agreement(None, self.stop, rank=0, clock=self.clock),
            saver=self.saver,
            heartbeat=self.heartbeat,
            faults=made,
            clock=self.clock,
        )

    def clock(self) -> float:
        return self.now

    def snapshot(self) -> Snapshot:
        self.made.append(self.step)
        self.phases.append(self.heartbeat.phase)
        model = {"state_dict": {"weight": torch.full((3,), float(self.step))}}
        return Snapshot(step=self.step, epoch=0, samples=self.step, model=model, own=self.own)

    def train(self, to: int, *, step_s: float = 1.0, over: bool = False) -> None:
        """Take steps until `to` are taken."""
        while self.step < to:
            self.now += step_s
            self.step += 1
            self.controller.boundary(self.step, self.snapshot, over=over)
            self.saver.wait_idle()

    @property
    def saved(self) -> list[int]:
        self.saver.finish()
        return sorted(found.step for found in list_checkpoints(self.folder, verify=True))

    def weight(self, step: int) -> float:
        state = load_tensors(self.folder / f"step-{step:09d}" / MODEL_FILE)
        return float(state["state_dict"]["weight"][0])


def stopped(do: Any) -> Stopped:
    with pytest.raises(Stopped) as caught:
        do()
    return caught.value
