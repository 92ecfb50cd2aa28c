"""Exactly-once training for loops of one's own, without Lightning.

::

    with Session.open(global_batch_size=64, seed=0) as session:
        model, optimizer = ...                          # wrapped in DDP as always
        session.restore(model=model, optimizer=optimizer)
        for epoch in session.epochs(10):
            for x, y in session.batches(DataLoader(train_set, shuffle=True)):
                loss = f(model(x), y) / session.accumulate
                loss.backward()
                if session.step_is_due:
                    optimizer.step()
                    optimizer.zero_grad()
                    session.stepped()

A stop ends the loops by itself: all ranks have saved the same step, and leave with exit code 75
at the end of the `with` block. Started again, the same lines go on behind that step.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from hpc_train.config.call_arguments import checked_call
from hpc_train.config.schema import CheckpointConfig
from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import RankExit
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.node_heartbeats import NodeHeartbeats
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.rank_failure import leave, record_exit
from hpc_train.training.resume.module_state import capture_module, restore_module
from hpc_train.training.resume.rank_checkpoint import RankCheckpoint, load_tensors
from hpc_train.training.resume.resume_state import ResumeState
from hpc_train.training.resume.rng import capture_rngs, restore_rngs
from hpc_train.training.resume.saving import Snapshot
from hpc_train.training.resume.shards import is_sharded, load_shards, save_shards
from hpc_train.training.resume.stop import StopFlag, Stopped
from hpc_train.training.resume.unsavable import Author, class_name
from hpc_train.training.sessions.early_steps import EarlySteps
from hpc_train.training.sessions.raw_loop_setup import find_run, join_run
from hpc_train.training.sessions.session_arguments import (
    check_due,
    check_entered,
    check_epochs,
    check_evaluated,
    check_objects,
    check_opened,
    check_restored,
    no_attribute,
    no_step,
)
from hpc_train.training.sessions.session_history import SessionHistory
from hpc_train.training.sessions.session_notes import SessionNotes

T = TypeVar("T")


class Session:
    """One attempt of a training that may be interrupted at any time. Make it with `open`."""

    @checked_call
    def __init__(self, rank: RankConfig, stop: StopFlag, environ: Mapping[str, str]) -> None:
        self._attempt = rank.run.attempt(rank.attempt)
        self._heartbeat = HeartbeatThread(
            self._attempt, rank=rank.rank, node=socket.gethostname(), every_s=1.0, stop=stop
        )
        self._heartbeat.share(
            NodeHeartbeats.of_run(rank.world_size, self._attempt, rank.run.stop, environ)
        )
        self._state = ResumeState(rank, self._heartbeat, stop)
        self._controller = self._state.controller
        self._batch = rank.batch
        self._objects: dict[str, Any] = {}
        self._sharded = False
        self._first_step = 0
        self._epoch = 0
        self._micro_batches = 0
        self._drawn = 0  # micro batches of this attempt
        self._entered = self._restored = False
        self._drew_all = False  # whether the batches at hand came to their end
        self._stopped: Stopped | None = None
        self._history = SessionHistory(rank.run, rank.attempt, environ, rank=rank.rank)
        note = self._history.note if rank.rank == 0 else None
        self._notes = SessionNotes(note, ranks=rank.world_size)
        self._early = EarlySteps(lambda: self._drawn, accumulate=self._batch.accumulate)
        self._rng: dict[str, Any] | None = None
        self.step = 0

    @classmethod
    @checked_call
    def open(
        cls,
        *,
        global_batch_size: int,
        seed: int = 0,
        micro_batch_size: int | None = None,
        run_dir: str | Path | None = None,
        checkpoint: CheckpointConfig | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Session:
        """Join the run that the environment describes, and its process group.

        Started by hpc-train, the run directory comes from there; with torchrun or by hand it is
        `run_dir`. Signals are taken over; the process group is made unless there is one.

        Args:
            global_batch_size: Samples an optimizer step, over all ranks.
            micro_batch_size: The most samples a rank takes at once.
            environ: In place of this process's environment.

        Raises:
            ConfigError: no run directory is named, or an argument is of another kind.
            CheckError: the ranks cannot share the global batch.
        """
        check_opened(global_batch_size, seed, micro_batch_size, run_dir, checkpoint)
        environ = os.environ if environ is None else environ
        run = find_run(environ, run_dir)
        stop = StopFlag(run.stop).install()
        rank = join_run(
            run,
            environ,
            global_batch_size=global_batch_size,
            micro_batch_size=micro_batch_size,
            seed=seed,
            checkpoint=checkpoint or CheckpointConfig(),
        )
        return cls(rank, stop, environ)

    def __getattr__(self, name: str) -> Any:
        raise no_attribute(type(self), name)

    def __enter__(self) -> Session:
        self._history.begins()
        self._heartbeat.start()
        self._entered = True
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End the process with 75 after a stop; the user's own exceptions pass."""
        self._early.end()
        ending = error or self._stopped or self._lacks_steps(is_over=self._drew_all)
        if ending is None:
            self._controller.end(lambda: self._snapshot(over=True))
            ending = self._controller.unsaved
        if isinstance(ending, Stopped) and self.rank == 0:
            print(ending, flush=True)  # noqa: T201 - a rank's log
        record_exit(self._attempt, ending, self._heartbeat, first_step=self._first_step)
        self._heartbeat.end()
        self._history.ends(self._first_step)
        if isinstance(ending, Stopped):
            leave(int(RankExit.SAVED))
        if error is None and ending is not None:
            raise ending

    @property
    def rank(self) -> int:
        """This process among all, from 0."""
        return self._state.rank.rank

    @property
    def world_size(self) -> int:
        """Processes over all nodes."""
        return self._state.rank.world_size

    @property
    def accumulate(self) -> int:
        """Micro batches that make one optimizer step."""
        return self._batch.accumulate

    @property
    def should_stop(self) -> bool:
        """Whether all ranks have agreed to stop and saved; the loops end by themselves."""
        return self._stopped is not None

    @property
    def step_is_due(self) -> bool:
        """Whether the batch at hand is the last of its accumulation."""
        return self._micro_batches % self._batch.accumulate == 0

    @checked_call
    def restore(self, **objects: Any) -> bool:
        """Keep `objects`, and put them back where the newest valid checkpoint has them.

        Args:
            objects: Whatever has state_dict() and load_state_dict(): a model (DDP, FSDP2 or plain),
                optimizers, schedulers, scalers, averages, samplers of one's own. Names matter.

        Returns:
            Whether there was a checkpoint to go on from.

        Raises:
            CheckError: it is one of another seed or global batch.
            ConfigError: an object has no state to keep.
        """
        check_objects(objects)
        self._restored = True
        self._notes.restored(objects)
        self._early.begin(objects)
        # Without DDP's wrapper, so that one rank can go on with what two have saved.
        self._objects = {
            name: item.module if isinstance(item, DistributedDataParallel) else item
            for name, item in objects.items()
        }
        start = self._state.load()
        if start is not None:
            self._restore_from(start)
        self._history.goes_on(self._first_step)
        modules = {name: item for name, item in objects.items() if isinstance(item, Module)}
        self._state.buckets.begin(**modules)
        self._sharded = any(is_sharded(module) for module in self._of(Module).values())
        try:
            self._controller.begin(self.step)
        except Stopped as stopped:
            self._stopped = stopped
        return start is not None

    @checked_call
    def epochs(self, count: int) -> Iterator[int]:
        """Numbers of the epochs still to be trained, the interrupted one first.

        Raises:
            RunFailedError: the first one is over, and `stepped` was not called.
        """
        check_epochs(count)
        check_entered("epochs", entered=self._entered)
        self._heartbeat.epochs = count
        while self._epoch < count and not self.should_stop:
            self._heartbeat.epoch = self._epoch + 1
            yield self._epoch
            if not self.should_stop:
                if lacks := self._lacks_steps(is_over=self._drew_all or self._epoch == count - 1):
                    raise lacks
                self._epoch += 1
                self._micro_batches = 0

    @checked_call
    def batches(self, loader: Any) -> Iterator[Any]:
        """This rank's micro batches of the rest of the epoch.

        Args:
            loader: A DataLoader, whose batch_size is replaced, or an iterable of batches with a
                state (see docs/resuming.md).

        Raises:
            ConfigError: the order of its samples cannot be continued, and why; or `restore` was
                not called.
        """
        check_entered("batches", entered=self._entered)
        check_restored("batches", restored=self._restored)
        self._drew_all = False
        self._notes.drew()
        steps = self._micro_batches // self._batch.accumulate
        exact = self._state.train_loader(
            loader, epoch=self._epoch, samples=steps * self._batch.global_batch_size
        )
        if self._state.stream is None and self._heartbeat.epochs is not None:
            steps_an_epoch = len(exact) // self._batch.accumulate
            self._heartbeat.steps = steps_an_epoch * self._heartbeat.epochs
        if self._rng is not None:  # here and not at once: making things in between draws on them
            restore_rngs(self._rng)
            self._rng = None
        for batch in exact:
            self._micro_batches += 1
            self._drawn += 1
            self._heartbeat.batch = self._micro_batches
            yield batch
            if self.should_stop:
                return
        self._drew_all = True

    @checked_call
    def evaluation(self, loader: DataLoader[Any]) -> Iterator[Any]:
        """This rank's share of an evaluation, each sample once over all ranks.

        Raises:
            Stopped: through the loop; the state from before the evaluation is saved, and the next
                attempt evaluates anew.
        """
        check_evaluated(loader)
        if self.should_stop:
            return
        share = self._state.evaluation_loader(loader)
        self._controller.evaluation_begins(
            self.step,
            snapshot=self._snapshot if self.step > self._first_step else None,
            may_leave=not self._sharded and self.step_is_due,
            batches=len(share),
        )
        for number, batch in enumerate(share, 1):
            yield batch
            self._controller.evaluation_batch(self.step, number)
        self._controller.evaluation_ends()

    def stepped(self) -> None:
        """Call it after each optimizer step (and scheduler step): saves where it is time to.

        Raises:
            ConfigError: `restore` was not called, or the step is not due.
            RunFailedError: the weights are NaN.
        """
        check_restored("stepped", restored=self._restored)
        if not self.step_is_due:
            steps = self.step + 1 - self._first_step
            check_due(steps, drawn=self._drawn, accumulate=self._batch.accumulate)
        self._notes.before_step()
        self.step += 1
        try:
            self._controller.boundary(self.step, self._snapshot, over=False)
        except Stopped as stopped:
            self._stopped = stopped
        self._notes.after_step()

    def _lacks_steps(self, *, is_over: bool) -> HpcTrainError | None:
        """What is wrong where an epoch is over, and no step has ever been counted."""
        counted = self.step > 0 or self._micro_batches < self._batch.accumulate
        return None if counted or not is_over else no_step(self._micro_batches)

    def _of(self, kind: type[T]) -> dict[str, T]:
        return {name: item for name, item in self._objects.items() if isinstance(item, kind)}

    def _snapshot(self, *, over: bool = False) -> Snapshot:
        sharded, modules = self._sharded, self._of(Module)
        in_shards = {*modules, *self._of(Optimizer)} if sharded else set()
        objects = {
            name: item.state_dict() for name, item in self._objects.items() if name not in in_shards
        }
        whole = {} if sharded else modules
        flat = {f"{name}.{key}": value for name in whole for key, value in objects[name].items()}
        inside = {
            "rng": capture_rngs(),
            "modules": {name: capture_module(item) for name, item in whole.items()},
        }
        return Snapshot(
            step=self.step,
            epoch=self._epoch,
            samples=self._state.samples(self._micro_batches),
            model={"objects": objects, "state_dict": flat} if self.rank == 0 else None,
            own=self._state.own(inside, self._micro_batches, over=over),
            shards=self._write_shards if sharded else None,
            authors=self._author,
            parameters=frozenset(
                f"{name}.{key}"
                for name, item in modules.items()
                for key, _ in item.named_parameters()
            ),
        )

    def _author(self, keys: Sequence[Any]) -> Author:
        """Of what `restore` got: whose state_dict has it."""
        if len(keys) < 3 or tuple(keys[:2]) != ("model", "objects"):
            return Author()
        kind = class_name(type(self._objects[keys[2]]))
        return Author(f"state_dict of {keys[2]} ({kind})")

    def _write_shards(self, folder: Path) -> None:
        (model,) = self._of(Module).values()
        save_shards(model, self._of(Optimizer), folder, self._state.group)

    def _restore_from(self, start: RankCheckpoint) -> None:
        saved = load_tensors(start.state_path)
        for name, item in self._objects.items():
            if name in saved["objects"]:
                item.load_state_dict(saved["objects"][name])
        if start.shards_path.is_dir():
            (model,) = self._of(Module).values()
            load_shards(model, self._of(Optimizer), start.shards_path, self._state.group)
        manifest, inside = start.manifest, start.own["inside"]
        same_world = manifest.world_size == self.world_size
        for name, item in inside.get("modules", {}).items():
            if name in self._objects:
                restore_module(self._objects[name], item, same_world=same_world)
        self._rng = inside["rng"]
        self.step = self._first_step = manifest.step
        self._epoch = manifest.epoch
        if manifest.samples is not None:
            steps = manifest.samples // self._batch.global_batch_size
            self._micro_batches = steps * self._batch.accumulate
        else:
            self._micro_batches = start.own["stream"]["batches"]
