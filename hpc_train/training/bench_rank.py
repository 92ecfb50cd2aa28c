"""`python -m hpc_train.training.bench_rank`: a rank that takes a few steps and measures them.

Three measurements of as many steps each, on all ranks alike:

1. the steps as they are: their rate and its spread;
2. the same, with the device waited for at each step's end: how long the next batch lets it wait;
3. like the second, without summing the gradients over the ranks (DDP's no_sync, pytorch.org/docs,
   "Distributed Data Parallel"): what the second's median is longer than this one's is
   communication that no computing hides, and waiting for slower ranks. The weights of the ranks go
   apart in it, and nothing of them is kept.

Then one save as the training's own: how long the steps stand still.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from contextlib import ExitStack
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from typing_extensions import override

from hpc_train.errors import RunFailedError
from hpc_train.plan.bench_plan import WARM_UP, measured_steps
from hpc_train.plan.plan import Plan
from hpc_train.plan.world import World
from hpc_train.runs.step_times import StepTimes, step_times_of, write_step_times
from hpc_train.training.devices import Device, LoaderSettings
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.metrics_csv import MetricsCsv
from hpc_train.training.private.lightning import Checkpoint, pl
from hpc_train.training.rank import Rank, main


class BenchRank(Rank):
    """A rank of `hpc-train bench`; what it saves is removed again."""

    @override
    def work(self, plan: Plan, world: World, device: Device, loader: LoaderSettings) -> None:
        """Train for as many steps as are measured."""
        state = self.make_state(plan, world)
        state.load()
        trainer, model, data = self.build(plan, world, device, loader)
        from hpc_train.training.resume.fit_with_resume import fit_with_resume

        for logger in trainer.loggers:  # a bench has csv alone, and the model expects the config's
            if isinstance(logger, MetricsCsv):
                logger.take_everything()
        waits = DataWaits()
        every = plan.checkpoint.every_n_steps or 0
        clock = StepClock(waits, self.heartbeat, every, is_cuda=device.kind == "cuda")
        needless = (Checkpoint, pl.callbacks.EarlyStopping)
        callbacks = cast("Any", trainer).callbacks
        callbacks[:] = [clock, *(item for item in callbacks if not isinstance(item, needless))]
        cast("Any", trainer).profiler = waits
        fit_with_resume(state, trainer, model=model, datamodule=data)
        measured = clock.measured(state.group)
        if world.rank == 0:
            run = self.here.run
            write_step_times(run, measured)
            for folder in (run.checkpoints, run.models):
                shutil.rmtree(folder, ignore_errors=True)
        self.early_end = "all steps are measured"


class DataWaits(pl.profilers.PassThroughProfiler):
    """How long the training has waited for batches, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.spent_s = 0.0
        self._since = 0.0

    @override
    def start(self, action_name: str) -> None:
        """The loader is asked."""
        if action_name.endswith("train_dataloader_next"):
            self._since = time.perf_counter()

    @override
    def stop(self, action_name: str) -> None:
        """It has answered."""
        if action_name.endswith("train_dataloader_next"):
            self.spent_s += time.perf_counter() - self._since


class StepClock(pl.Callback):
    """Notes when steps end; evaluations count as no time.

    Args:
        waits: What the loader costs within an epoch; the epoch's begin is added to it here.
        last: The step at which the last measurement ends, and the training saves.
        is_cuda: The device works on while the host goes on, so that it is waited for.
    """

    def __init__(
        self, waits: DataWaits, heartbeat: HeartbeatThread, last: int, *, is_cuda: bool
    ) -> None:
        self._waits, self._heartbeat, self._is_cuda = waits, heartbeat, is_cuda
        self._edges = measured_steps((last - WARM_UP) // 3)
        self._marks: list[tuple[int, float, float]] = []  # step, when, waited for data until then
        self._times_s: tuple[list[float], ...] = ([], [], [])  # steps of each measurement
        self._step, self._at = 0, 0.0
        self._out_s = self._out_since = 0.0
        self._epoch_began: tuple[float, float] | None = None
        self._apart = ExitStack()
        self._is_apart = False
        self._save_s: float | None = None

    @override
    def on_train_epoch_start(self, *_: Any) -> None:
        """The loader is started: what passes until the first batch is waiting for data."""
        self._epoch_began = self._now(), self._waits.spent_s

    @override
    def on_train_batch_start(self, *_: Any) -> None:
        """A batch is there."""
        if self._epoch_began is not None:
            began, waited_s = self._epoch_began
            self._waits.spent_s = waited_s + self._now() - began
            self._epoch_began = None
        if len(self._marks) == len(self._edges) and self._save_s is None:
            self._save_s = self._heartbeat.seconds().get("save", 0.0)

    @override
    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """A batch is done, and with it a step where none is accumulated."""
        step, done = trainer.global_step, len(self._marks)
        if step == self._step or done == len(self._edges):
            return
        self._step, is_edge = step, step >= self._edges[done]
        if self._is_cuda and (is_edge or done >= 2):
            torch.cuda.synchronize()
        now = self._now()
        if done:
            self._times_s[done - 1].append(now - self._at)
        self._at = now
        if not is_edge:
            return
        self._marks.append((step, now, self._waits.spent_s))
        model = trainer.strategy.model
        if done == 2 and isinstance(model, DistributedDataParallel):
            self._apart.enter_context(model.no_sync())
            self._is_apart = True
        elif done == 3:
            self._apart.close()

    @override
    def on_validation_start(self, *_: Any) -> None:
        """The clock stands."""
        self._out_since = time.perf_counter()

    @override
    def on_validation_end(self, *_: Any) -> None:
        """It goes on."""
        self._out_s += time.perf_counter() - self._out_since

    def _now(self) -> float:
        return time.perf_counter() - self._out_s

    def measured(self, group: dist.ProcessGroup | None) -> StepTimes:
        """What was measured, of the slowest rank. Collective.

        Raises:
            RunFailedError: the training ended before.
        """
        if self._save_s is None:
            raise RunFailedError(
                f"the training ended after {self._step} steps, and {self._edges[-1]} are measured",
                "something in it stops it early: a callback, or data that end",
            )
        together, apart = map(statistics.median, self._times_s[1:])
        parts = [self._mean_s(1, 1), self._mean_s(2, 2), together, apart, self._save_s]
        slowest = torch.tensor(parts, dtype=torch.float64)
        if group is not None:
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX, group=group)
        step_s, data_s, together, apart, save_s = slowest.tolist()
        comm_s = max(0.0, together - apart) if self._is_apart else None
        return step_times_of(self._times_s[0], step_s, data_s=data_s, comm_s=comm_s, save_s=save_s)

    def _mean_s(self, number: int, what: int) -> float:
        """Of a step in a measurement: its length, or its waiting for data."""
        before, after = self._marks[number - 1], self._marks[number]
        return (after[what] - before[what]) / (after[0] - before[0])


if __name__ == "__main__":
    sys.exit(main(BenchRank))
