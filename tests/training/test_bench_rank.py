"""The clock of a bench's rank, by a clock of our own."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hpc_train.errors import RunFailedError
from hpc_train.plan.bench_plan import WARM_UP, last_step, measured_steps
from hpc_train.training.bench_rank import DataWaits, StepClock

STEPS = 5
NEXT = "[_EpochLoop].train_dataloader_next"


class Training:
    """Optimizer steps of `accumulate` batches; each batch is waited for and computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_cuda: bool = False) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        self.synchronized: list[int] = []
        monkeypatch.setattr(
            torch.cuda, "synchronize", lambda: self.synchronized.append(self.trainer.global_step)
        )
        self.saved_s = 0.0
        self.trainer: Any = SimpleNamespace(
            global_step=0, strategy=SimpleNamespace(model=torch.nn.Linear(1, 1))
        )
        heartbeat: Any = SimpleNamespace(seconds=lambda: {"save": self.saved_s})
        self.waits = DataWaits()
        last = measured_steps(STEPS)[-1]
        self.clock = StepClock(self.waits, heartbeat, last, is_cuda=is_cuda)

    def epoch(self, first_s: float) -> None:
        """An epoch begins, and its first batch is there after so long."""
        self.clock.on_train_epoch_start()
        self.waits.start(NEXT)
        self.now += first_s
        self.waits.stop(NEXT)

    def step(self, *, wait_s: float, compute_s: float, accumulate: int = 1) -> None:
        for batch in range(accumulate):
            self.waits.start(NEXT)
            self.now += wait_s / accumulate
            self.waits.stop(NEXT)
            self.clock.on_train_batch_start()
            self.now += compute_s / accumulate
            self.trainer.global_step += batch == accumulate - 1
            self.clock.on_train_batch_end(self.trainer)

    def validation(self) -> None:
        self.clock.on_validation_start()
        self.now += 50
        self.clock.on_validation_end()


@pytest.mark.parametrize("accumulate", [1, 3])
def test_warm_up_and_validations_are_no_time_of_a_step(
    monkeypatch: pytest.MonkeyPatch, accumulate: int
) -> None:
    training = Training(monkeypatch)
    training.epoch(0.0)
    for number in range(last_step(STEPS)):
        slow = 7.0 if number < WARM_UP else 0.0
        training.step(wait_s=0.1 + slow, compute_s=0.3, accumulate=accumulate)
        training.validation()
        training.saved_s = 2.5 if number >= measured_steps(STEPS)[-1] - 1 else 0.0
    found = training.clock.measured(None)
    assert found.steps == STEPS
    assert (found.step_s, found.low_s, found.high_s) == (pytest.approx(0.4),) * 3
    assert (found.data_s, found.save_s) == (pytest.approx(0.1), pytest.approx(2.5))
    assert found.comm_s is None, "one rank sums nothing"


def test_the_begin_of_an_epoch_is_waiting_for_data_once(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch)
    for number in range(last_step(STEPS)):
        if number == WARM_UP + STEPS + 2:  # in the second measurement
            training.epoch(1.0)
        training.step(wait_s=0.0, compute_s=0.2)
    assert training.clock.measured(None).data_s == pytest.approx(1.0 / STEPS)


def test_a_gpu_is_waited_for_at_each_step_but_those_whose_rate_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    training = Training(monkeypatch, is_cuda=True)
    for _ in range(last_step(STEPS)):
        training.step(wait_s=0.0, compute_s=0.2)
    assert training.synchronized == [10, 15, *range(16, 26)]


def test_a_training_that_ends_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch)
    for _ in range(12):
        training.step(wait_s=0.0, compute_s=0.2)
    with pytest.raises(RunFailedError, match="ended after 12 steps, and 25 are measured"):
        training.clock.measured(None)
