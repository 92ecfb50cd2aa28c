"""Ties Lightning's Trainer to the controller: its data, its steps, its evaluations, its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from torch.utils.data import DataLoader
from typing_extensions import override

from hpc_train.errors import ConfigError
from hpc_train.training.private import lightning_trainer as inner
from hpc_train.training.private.lightning import TorchCheckpointIO, TrainerFn, pl
from hpc_train.training.private.lightning_logged import capture_logged, restore_logged
from hpc_train.training.private.lightning_loops import replace_loops
from hpc_train.training.resume.module_state import capture_module, restore_module
from hpc_train.training.resume.rank_checkpoint import load_tensors
from hpc_train.training.resume.resume_state import ResumeState
from hpc_train.training.resume.rng import capture_rngs, restore_rngs
from hpc_train.training.resume.saving import Snapshot

__all__ = ["LightningAdapter"]


class LightningAdapter(pl.Callback):
    """The hooks of one Trainer; made before its fit, used once."""

    def __init__(self, state: ResumeState) -> None:
        self.state = state
        self.controller = state.controller
        self._loaded = state.start
        self._evaluated = 0

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
        epoch = inner.current_epoch(self._trainer)
        may_shuffle = not cast("Any", self._trainer).overfit_batches
        return [self.state.train_loader(loaders[0], epoch=epoch, may_shuffle=may_shuffle)]

    def epoch_begins(self, epoch: int) -> None:
        """The next iteration of the train data is `epoch`."""
        self.state.epoch_begins(epoch)

    def _evaluation(self, loaders: list[Any]) -> list[Any]:
        """What `val_dataloader` or `test_dataloader` returned, dealt out over the ranks."""
        return [
            self.state.evaluation_loader(loader) if isinstance(loader, DataLoader) else loader
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
            old, new = self._loaded.manifest.accumulate, self.state.rank.batch.accumulate
            if old != new:
                inner.rescale_batches(checkpoint, old=old, new=new)

    def begins(self) -> bool:
        """The first step comes; returns whether a validation is still to be done before it."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            same_world = loaded.manifest.world_size == self.state.rank.world_size
            self._restore(loaded.own["inside"], same_world=same_world)
        self.state.buckets.begin(model=cast("Any", self._trainer.strategy.model))
        self.controller.begin(self._trainer.global_step)
        return loaded is not None and bool(loaded.own["validation_pending"])

    def _restore(self, saved: dict[str, Any], *, same_world: bool) -> None:
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
        trainer, module, state = self._trainer, self._trainer.lightning_module, self.state
        batches = inner.train_batches(trainer)
        model = inner.dump_checkpoint(trainer)
        sharded = inner.saves_shards(trainer.strategy)
        inside = {
            "rng": capture_rngs(),
            **capture_module(module),
            **capture_logged(trainer),
            "should_stop": trainer.should_stop,
        }
        own = state.own(inside, batches, over=over)
        return Snapshot(
            step=trainer.global_step,
            epoch=inner.current_epoch(trainer),
            samples=state.samples(batches),
            model=model if state.rank.rank == 0 and not sharded else None,
            own={**own, "validation_pending": validation_pending},
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
