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

import dataclasses
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.utils.data import DataLoader, IterableDataset

from hpc_train.config.schema import CheckpointConfig
from hpc_train.plan.states import RankExit
from hpc_train.runs.ranks import ExitRecord, write_exit
from hpc_train.training.faults import RehearsedFaults
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.rank_failure import RankFailure, failure_of
from hpc_train.training.raw_loop_setup import JoinedRun, find_run, join_run
from hpc_train.training.resume.agreement import cpu_group
from hpc_train.training.resume.buckets import GradientBuckets
from hpc_train.training.resume.fit_with_resume import (
    check_same_config,
    choose_checkpoint,
    leave,
    make_guard,
)
from hpc_train.training.resume.iterable_resume import StreamPosition, enter_epoch, stream_loader
from hpc_train.training.resume.manifest import read_manifest
from hpc_train.training.resume.module_state import capture_module, restore_module
from hpc_train.training.resume.rank_checkpoint import RankCheckpoint, load_tensors
from hpc_train.training.resume.rng import capture_rngs, restore_rngs
from hpc_train.training.resume.sample_order import DataPosition, mixed_seed
from hpc_train.training.resume.sampling import evaluation_loader, loader_at
from hpc_train.training.resume.saving import Identity, Snapshot, say_loudly
from hpc_train.training.resume.shards import is_sharded, load_shards, save_shards
from hpc_train.training.resume.step_controller import Stopped
from hpc_train.training.resume.stop import StopFlag

__all__ = ["Session"]

T = TypeVar("T")


class Session:
    """One attempt of a training that may be interrupted at any time. Make it with `open`."""

    def __init__(self, place: JoinedRun, config: CheckpointConfig, stop: StopFlag) -> None:
        self._place = place
        self._stop = stop
        attempt = place.run_dir.attempt(place.attempt)
        self._heartbeat = HeartbeatThread(
            attempt, rank=place.rank, node=socket.gethostname(), every_s=1.0, stop=stop
        )
        faults = RehearsedFaults.from_env(os.environ, rank=place.rank, attempt=place.attempt)
        self._group = cpu_group(place.world_size)
        self._guard = make_guard(
            place.run_dir.checkpoints,
            config,
            Identity(
                config_hash=place.config_hash,
                attempt=place.attempt,
                world_size=place.world_size,
                accumulate=place.batch.accumulate,
            ),
            rank=place.rank,
            group=self._group,
            stop=stop,
            heartbeat=self._heartbeat,
            faults=faults,
        )
        self._verify = config.verify_on_load
        self._objects: dict[str, Any] = {}
        self._buckets = GradientBuckets(None)
        self._sharded = False
        self._loaded: RankCheckpoint | None = None
        self._first_step = 0
        self._epoch = 0
        self._micro_batches = 0
        self._samples_in_set: int | None = None
        self._stream: StreamPosition | None = None
        self._stopped: Stopped | None = None
        self._rng: dict[str, Any] | None = None
        self.step = 0

    @classmethod
    def open(
        cls,
        *,
        global_batch_size: int,
        seed: int = 0,
        micro_batch_size: int | None = None,
        run_dir: str | Path | None = None,
        checkpoint: CheckpointConfig | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Session:
        """Join the run that the environment describes, and its process group.

        Started by hpc-train, the run directory comes from there; with torchrun or by hand it is
        `run_dir`. Signals are taken over; the process group is made unless there is one.

        Args:
            global_batch_size: Samples an optimizer step, over all ranks.
            micro_batch_size: The most samples a rank takes at once.

        Raises:
            ConfigError: no run directory is named.
            CheckError: the ranks cannot share the global batch.
        """
        run = find_run(environ, run_dir)
        stop = StopFlag(run.stop).install()
        place = join_run(
            run,
            environ,
            global_batch_size=global_batch_size,
            micro_batch_size=micro_batch_size,
            seed=seed,
        )
        return cls(place, checkpoint or CheckpointConfig(), stop)

    def __enter__(self) -> Session:
        self._heartbeat.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process with 75 after a stop; the user's own exceptions pass."""
        if isinstance(error, Stopped):
            self._stopped = error
        elif error is not None:
            self._record(failure_of(error))
            self._heartbeat.end()
            return
        elif self._stopped is None:
            self._guard.end(lambda: self._snapshot(over=True))
        if self._stopped is not None and self._place.rank == 0:
            print(self._stopped, flush=True)  # noqa: T201 - a rank's log
        self._heartbeat.end()
        saved = self._stopped is not None
        code = int(RankExit.SAVED if saved else RankExit.FINISHED)
        word = "saved" if saved else "finished"
        self._record(RankFailure(code=code, kind=word, error="", where="", traceback=""))
        if self._stopped is not None:
            leave(int(RankExit.SAVED))

    @property
    def rank(self) -> int:
        """This process among all, from 0."""
        return self._place.rank

    @property
    def world_size(self) -> int:
        """Processes over all nodes."""
        return self._place.world_size

    @property
    def accumulate(self) -> int:
        """Micro batches that make one optimizer step."""
        return self._place.batch.accumulate

    @property
    def should_stop(self) -> bool:
        """Whether all ranks have agreed to stop and saved; the loops end by themselves."""
        return self._stopped is not None

    @property
    def step_is_due(self) -> bool:
        """Whether the batch at hand is the last of its accumulation."""
        return self._micro_batches % self._place.batch.accumulate == 0

    def restore(self, **objects: Any) -> bool:
        """Keep `objects`, and put them back where the newest valid checkpoint has them.

        Args:
            objects: Whatever has state_dict() and load_state_dict(): a model (DDP, FSDP2 or plain),
                optimizers, schedulers, scalers, averages, samplers of one's own. Names matter.

        Returns:
            Whether there was a checkpoint to go on from.

        Raises:
            CheckError: it is one of another seed or global batch.
        """
        # Without DDP's wrapper, so that one rank can go on with what two have saved.
        self._objects = {
            name: item.module if isinstance(item, DistributedDataParallel) else item
            for name, item in objects.items()
        }
        place = self._place
        chosen = choose_checkpoint(
            place.run_dir, place.attempt, verify=self._verify, rank=place.rank, group=self._group
        )
        if chosen is not None:
            check_same_config(chosen, place.config_hash)
            self._loaded = self._load(chosen.path)
            self._buckets = GradientBuckets(self._loaded.own.get("buckets"))
        self._buckets.begin(**{key: it for key, it in objects.items() if isinstance(it, Module)})
        self._sharded = any(is_sharded(module) for module in self._of(Module).values())
        try:
            self._guard.begin(self.step)
        except Stopped as stopped:
            self._stopped = stopped
        return chosen is not None

    def epochs(self, count: int) -> Iterator[int]:
        """Numbers of the epochs still to be trained, the interrupted one first."""
        while self._epoch < count and not self.should_stop:
            yield self._epoch
            if not self.should_stop:
                self._epoch += 1
                self._micro_batches = 0

    def batches(self, loader: Any) -> Iterator[Any]:
        """This rank's micro batches of the rest of the epoch.

        Args:
            loader: A DataLoader, whose batch_size is replaced, or an iterable of batches with a
                state (see docs/resuming.md).

        Raises:
            ConfigError: the order of its samples cannot be continued, and why.
        """
        exact = self._exact_loader(loader)
        if self._rng is not None:  # here and not at once: making things in between draws on them
            restore_rngs(self._rng)
            self._rng = None
        for batch in exact:
            self._micro_batches += 1
            self._heartbeat.batch = self._micro_batches
            yield batch
            if self.should_stop:
                return

    def evaluation(self, loader: DataLoader[Any]) -> Iterator[Any]:
        """This rank's share of an evaluation, each sample once over all ranks.

        Raises:
            Stopped: through the loop; the state from before the evaluation is saved, and the next
                attempt evaluates anew.
        """
        if self.should_stop:
            return
        place = self._place
        share = evaluation_loader(
            loader, rank=place.rank, world_size=place.world_size, seed=place.seed
        )
        plain = not self._sharded
        self._guard.evaluation_begins(
            self.step,
            snapshot=self._snapshot if self.step > self._first_step else None,
            may_leave=plain and self.step_is_due,
            batches=len(share),
        )
        for number, batch in enumerate(share, 1):
            yield batch
            self._guard.evaluation_batch(self.step, number)
        self._guard.evaluation_ends()

    def stepped(self) -> None:
        """Call it after each optimizer step (and scheduler step): saves where it is time to.

        Raises:
            RunFailedError: the weights are NaN.
        """
        self.step += 1
        try:
            self._guard.boundary(self.step, self._snapshot, over=False)
        except Stopped as stopped:
            self._stopped = stopped

    # -- inside -------------------------------------------------------------------------------

    def _exact_loader(self, loader: Any) -> Any:
        start, self._loaded = self._loaded, None
        place = self._place
        if isinstance(loader, DataLoader) and not isinstance(loader.dataset, IterableDataset):
            self._samples_in_set = len(loader.dataset)  # type: ignore[arg-type]
            return loader_at(
                loader,
                DataPosition(self._epoch, self._samples(), place.seed),
                place.batch,
                rank=place.rank,
                world_size=place.world_size,
                saved_size=start.samples_in_set if start is not None else None,
            )
        exact, self._stream = stream_loader(
            loader,
            micro_batch_size=place.batch.micro_batch_size,
            start=start.stream(place.batch.accumulate) if start is not None else None,
        )
        if not self._stream.exact and place.rank == 0 and start is not None:
            say_loudly("the train set has no state_dict(): it is read again up to here")
        seed = mixed_seed(place.seed, place.rank)
        enter_epoch(exact, self._stream, epoch=self._epoch, seed=seed)
        return exact

    def _samples(self) -> int:
        batch = self._place.batch
        return self._micro_batches // batch.accumulate * batch.global_batch_size

    def _of(self, kind: type[T]) -> dict[str, T]:
        return {name: item for name, item in self._objects.items() if isinstance(item, kind)}

    def _snapshot(self, *, over: bool = False) -> Snapshot:
        sharded, modules = self._sharded, self._of(Module)
        in_shards = {*modules, *self._of(Optimizer)} if sharded else set()
        state = {
            name: item.state_dict() for name, item in self._objects.items() if name not in in_shards
        }
        whole = {} if sharded else modules
        flat = {f"{name}.{key}": value for name in whole for key, value in state[name].items()}
        modules_own = {name: capture_module(item) for name, item in whole.items()}
        own = {
            "inside": {"rng": capture_rngs(), "modules": modules_own},
            "buckets": self._buckets.capture(),
            "stream": self._stream.after(self._micro_batches) if self._stream else None,
            "samples_in_set": self._samples_in_set,
            "seed": self._place.seed,
            "over": over,
        }
        return Snapshot(
            step=self.step,
            epoch=self._epoch,
            samples=None if self._stream else self._samples(),
            model={"objects": state, "state_dict": flat} if self.rank == 0 else None,
            own=own,
            shards=self._write_shards if sharded else None,
            parameters=frozenset(
                f"{name}.{key}"
                for name, item in modules.items()
                for key, _ in item.named_parameters()
            ),
        )

    def _write_shards(self, folder: Path) -> None:
        (model,) = self._of(Module).values()
        save_shards(model, self._of(Optimizer), folder, self._group)

    def _load(self, path: Path) -> RankCheckpoint:
        manifest = read_manifest(path)
        place = self._place
        loaded = RankCheckpoint.read(path, manifest, rank=place.rank, world_size=place.world_size)
        saved = load_tensors(loaded.state_path)
        for name, item in self._objects.items():
            if name in saved["objects"]:
                item.load_state_dict(saved["objects"][name])
        if loaded.shards_path.is_dir():
            (model,) = self._of(Module).values()
            load_shards(model, self._of(Optimizer), loaded.shards_path, self._group)
        same_world = manifest.world_size == place.world_size
        for name, item in loaded.own["inside"].get("modules", {}).items():
            if name in self._objects:
                restore_module(self._objects[name], item, same_world=same_world)
        self._rng = loaded.own["inside"]["rng"]
        self.step = self._first_step = manifest.step
        self._epoch = manifest.epoch
        if manifest.samples is not None:
            steps_in_epoch = manifest.samples // place.batch.global_batch_size
            self._micro_batches = steps_in_epoch * place.batch.accumulate
        else:
            self._micro_batches = loaded.own["stream"]["batches"]
        return loaded

    def _record(self, ending: RankFailure) -> None:
        place = self._place
        record = ExitRecord(
            rank=place.rank,
            node=socket.gethostname(),
            time=time.time(),
            cause=(self._stop.reason or "") if ending.kind == "saved" else "",
            first_step=self._first_step,
            step=self.step,
            phase=self._heartbeat.phase,
            **dataclasses.asdict(ending),
        )
        write_exit(place.run_dir.attempt(place.attempt), record)
