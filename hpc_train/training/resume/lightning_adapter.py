"""Ties Lightning's Trainer to the controller: its data, its steps, its evaluations, its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from torch.utils.data import DataLoader, IterableDataset
from typing_extensions import override

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Batch
from hpc_train.training.private import lightning_trainer as inner
from hpc_train.training.private.lightning import TorchCheckpointIO, TrainerFn, pl
from hpc_train.training.private.lightning_logged import capture_logged, restore_logged
from hpc_train.training.private.lightning_loops import replace_loops
from hpc_train.training.resume.buckets import GradientBuckets
from hpc_train.training.resume.iterable_resume import StreamPosition, enter_epoch, stream_loader
from hpc_train.training.resume.module_state import capture_module, restore_module
from hpc_train.training.resume.rank_checkpoint import RankCheckpoint, load_tensors
from hpc_train.training.resume.rng import capture_rngs, restore_rngs
from hpc_train.training.resume.sample_order import DataPosition, mixed_seed
from hpc_train.training.resume.sampling import evaluation_loader, loader_at
from hpc_train.training.resume.saving import Snapshot, say_loudly
from hpc_train.training.resume.step_controller import StepController

__all__ = ["LightningAdapter"]


class LightningAdapter(pl.Callback):
    """The hooks of one Trainer; made before its fit, used once.

    Args:
        loaded: What this attempt goes on from; None for a fresh start.
    """

    def __init__(
        self,
        controller: StepController,
        *,
        batch: Batch,
        rank: int,
        world_size: int,
        seed: int,
        loaded: RankCheckpoint | None,
    ) -> None:
        self.controller = controller
        self._batch = batch
        self._rank = rank
        self._world_size = world_size
        self._seed = seed
        self._loaded = loaded
        self._start = loaded
        self._stream: StreamPosition | None = None
        self._streaming: Any = None
        self._samples_in_set: int | None = None
        self._evaluated = 0
        self._buckets = GradientBuckets(loaded.own.get("buckets") if loaded is not None else None)

    def attach(self, trainer: pl.Trainer) -> None:
        """Put our loops, data sources and reader in place of Lightning's."""
        self._trainer = trainer
        replace_loops(trainer, self)
        inner.change_loaders(trainer, train=self._train_loaders, evaluation=self._evaluation)
        inner.leave_signals_alone(trainer)
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = _CarefulReader()
        # Last: what other callbacks do at a step's end belongs to the step.
        cast("Any", trainer).callbacks.append(self)

    # -- data ---------------------------------------------------------------------------------

    def _train_loaders(self, loaders: list[Any]) -> list[Any]:
        """What `train_dataloader` returned, made to go on at the position."""
        if len(loaders) != 1:
            raise ConfigError(
                f"train_dataloader returned {len(loaders)} loaders, and only the position of one "
                "can be kept",
                "return one loader, over a torch.utils.data.ConcatDataset or StackDataset",
            )
        loader = loaders[0]
        start, self._start = self._start, None
        # Not from the loops: `estimated_stepping_batches` asks for the data before their restore.
        epoch = start.manifest.epoch if start is not None else inner.current_epoch(self._trainer)
        if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
            return [self._stream_loader(loader, start, epoch)]
        self._samples_in_set = len(cast("Any", loader.dataset))
        exact = loader_at(
            loader,
            DataPosition(epoch, start.samples or 0 if start else 0, self._seed),
            self._batch,
            rank=self._rank,
            world_size=self._world_size,
            saved_size=start.samples_in_set if start is not None else None,
            may_shuffle=not cast("Any", self._trainer).overfit_batches,
        )
        return [exact]

    def _stream_loader(self, loader: Any, start: RankCheckpoint | None, epoch: int) -> Any:
        state = start.stream(self._batch.accumulate) if start is not None else None
        micro = self._batch.micro_batch_size
        self._streaming, self._stream = stream_loader(loader, micro_batch_size=micro, start=state)
        self.epoch_begins(epoch)  # already now: some are asked for a batch before the epoch begins
        if not self._stream.exact and self._rank == 0:
            say_loudly(
                "the train set is iterable and has no state_dict(): after an interruption it is "
                "read again from its beginning and what was seen is thrown away, which is exact "
                "only if it gives the same samples each time (give it state_dict() and "
                "load_state_dict(), see docs/resuming.md)"
            )
        return self._streaming

    def epoch_begins(self, epoch: int) -> None:
        """The next iteration of the train data is `epoch`; map-style sets learn it by sampler."""
        if self._stream is not None:
            seed = mixed_seed(self._seed, self._rank)
            enter_epoch(self._streaming, self._stream, epoch=epoch, seed=seed)

    def _evaluation(self, loaders: list[Any]) -> list[Any]:
        """What `val_dataloader` or `test_dataloader` returned, dealt out over the ranks."""
        place = {"rank": self._rank, "world_size": self._world_size, "seed": self._seed}
        return [
            evaluation_loader(loader, **place) if isinstance(loader, DataLoader) else loader
            for loader in loaders
        ]

    # -- steps --------------------------------------------------------------------------------

    def was_over(self) -> bool | None:
        """Whether the checkpoint that waits is of a finished training; None if none waits."""
        return bool(self._loaded.own["over"]) if self._loaded is not None else None

    @override
    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        """Before loops and optimizers are restored from it."""
        if self._loaded is not None:
            old, new = self._loaded.manifest.accumulate, self._batch.accumulate
            if old != new:
                inner.rescale_batches(checkpoint, old=old, new=new)

    def begins(self) -> bool:
        """The first step comes; returns whether a validation is still to be done before it."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            self._restore(loaded.own["inside"], loaded.manifest.world_size == self._world_size)
        self._buckets.begin(model=cast("Any", self._trainer.strategy.model))
        self.controller.begin(self._trainer.global_step)
        return loaded is not None and bool(loaded.own["validation_pending"])

    def _restore(self, saved: dict[str, Any], same_world: bool) -> None:
        """Put back what Lightning does not; the RNGs last."""
        trainer = self._trainer
        trainer.should_stop = saved["should_stop"]
        restore_module(trainer.lightning_module, saved, same_world=same_world)
        restore_logged(trainer, saved, same_world=same_world)
        restore_rngs(saved["rng"])

    def validation_begins(self) -> None:
        """Ready to leave a long validation with the state from before it."""
        trainer = self._trainer
        batches = inner.validation_batches(trainer)
        at_boundary = not inner.is_accumulating(trainer)
        if batches:
            may_leave = at_boundary and not inner.saves_shards(trainer.strategy)
            self._evaluation_begins(batches, snapshot=at_boundary, may_leave=may_leave)

    def boundary(self) -> None:
        """The optimizer stepped, and everything that belongs to that step is done."""
        self.controller.boundary(self._trainer.global_step, self.snapshot, over=self._is_over())

    def _is_over(self) -> bool:
        trainer = self._trainer
        if trainer.max_steps != -1 and trainer.global_step >= trainer.max_steps:
            return True
        epochs = trainer.max_epochs
        if epochs in (None, -1) or not inner.is_last_batch(trainer):
            return False
        return inner.current_epoch(trainer) + 1 >= epochs

    @override
    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        """A sign of life within an accumulation."""
        self.controller.heartbeat.batch = inner.train_batches(self._trainer)

    @override
    def on_train_end(self, *_: Any) -> None:
        """The last state is saved, while all ranks are here."""
        self.controller.end(lambda: self.snapshot(over=True))

    def snapshot(self, *, validation_pending: bool = False, over: bool = False) -> Snapshot:
        """The whole state now; on all ranks, since a strategy may gather."""
        trainer, module = self._trainer, self._trainer.lightning_module
        batches = inner.train_batches(trainer)
        model = inner.dump_checkpoint(trainer)
        sharded = inner.saves_shards(trainer.strategy)
        steps_of_epoch = -(-batches // self._batch.accumulate)
        own = {
            "inside": {
                "rng": capture_rngs(),
                **capture_module(module),
                **capture_logged(trainer),
                "should_stop": trainer.should_stop,
            },
            "buckets": self._buckets.capture(),
            "stream": self._stream.after(batches) if self._stream is not None else None,
            "samples_in_set": self._samples_in_set,
            "seed": self._seed,
            "validation_pending": validation_pending,
            "over": over,
        }
        return Snapshot(
            step=trainer.global_step,
            epoch=inner.current_epoch(trainer),
            samples=None if self._stream else steps_of_epoch * self._batch.global_batch_size,
            model=model if self._rank == 0 and not sharded else None,
            own=own,
            shards=inner.shard_writer(trainer.strategy, model) if sharded else None,
            parameters=frozenset(name for name, _ in module.named_parameters()),
        )

    # -- evaluations --------------------------------------------------------------------------

    @override
    def on_sanity_check_start(self, *_: Any) -> None:
        """The first evaluation, of a few batches."""
        self.controller.faults.at("sanity")
        batches = inner.validation_batches(self._trainer)
        self._evaluation_begins(batches, snapshot=False, may_leave=True)

    @override
    def on_sanity_check_end(self, *_: Any) -> None:
        """Training comes."""
        self.controller.evaluation_ends(whole=False)

    @override
    def on_validation_start(self, trainer: pl.Trainer, *_: Any) -> None:
        """Only `trainer.validate`; inside a fit the epoch loop is asked earlier."""
        if trainer.state.fn == TrainerFn.VALIDATING:
            self.on_test_start(trainer)

    @override
    def on_test_start(self, trainer: pl.Trainer, *_: Any) -> None:
        """`trainer.test`."""
        batches = inner.evaluation_batches(trainer)
        self._evaluation_begins(batches, snapshot=False, may_leave=True)

    def _evaluation_begins(
        self, batches: list[int | float], *, snapshot: bool, may_leave: bool
    ) -> None:
        total = sum(batches)
        self._evaluated = 0
        self.controller.evaluation_begins(
            self._trainer.global_step,
            snapshot=(lambda: self.snapshot(validation_pending=True)) if snapshot else None,
            may_leave=may_leave,
            batches=0 if total == float("inf") else int(total),
        )

    @override
    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        """A stop may come here."""
        self._evaluated += 1
        self.controller.evaluation_batch(self._trainer.global_step, self._evaluated)

    on_test_batch_end = on_validation_batch_end

    @override
    def on_validation_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Back to training."""
        if not trainer.sanity_checking:
            self.controller.evaluation_ends()


class _CarefulReader(TorchCheckpointIO):
    """Reads with weights_only where the file lets it."""

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> dict[str, Any]:
        loaded: dict[str, Any] = load_tensors(Path(path))
        return loaded
