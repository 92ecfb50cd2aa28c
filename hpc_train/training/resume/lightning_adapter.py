"""Ties Lightning's Trainer to the controller: its data, its steps, its evaluations, its state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytorch_lightning as pl
from pytorch_lightning.plugins.io import TorchCheckpointIO
from pytorch_lightning.strategies import Strategy
from pytorch_lightning.trainer.connectors.data_connector import _DataLoaderSource
from pytorch_lightning.trainer.states import TrainerFn
from pytorch_lightning.utilities._pytree import _tree_flatten
from pytorch_lightning.utilities.combined_loader import CombinedLoader
from torch.utils._pytree import tree_unflatten
from torch.utils.data import DataLoader
from typing_extensions import override

from hpc_train.errors import ConfigError
from hpc_train.training.resume.lightning_state import capture_inside, restore_inside
from hpc_train.training.resume.loops import replace_loops
from hpc_train.training.resume.rank_checkpoint import load_tensors
from hpc_train.training.resume.resume_state import ResumeState
from hpc_train.training.resume.saving import Snapshot

__all__ = ["HpcTrainCallback", "LightningAdapter"]


class LightningAdapter:
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
        fit_loop = trainer.fit_loop
        fit_loop._data_source = _TrainSource(None, "train_dataloader", self)
        for loop, name in (
            (fit_loop.epoch_loop.val_loop, "val_dataloader"),
            (trainer.validate_loop, "val_dataloader"),
            (trainer.test_loop, "test_dataloader"),
        ):
            loop._data_source = _EvaluationSource(None, name, self)
        # Its handlers communicate from inside a signal handler, which can deadlock with a step.
        connector: Any = trainer._signal_connector
        connector.register_signal_handlers = _do_nothing
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = _CarefulReader()

    # -- data ---------------------------------------------------------------------------------

    def train_loaders(self, given: Any) -> Any:
        """What `train_dataloader` returned, made to go on at the position."""
        combined = given if isinstance(given, CombinedLoader) else None
        leaves, spec = _tree_flatten(combined.iterables if combined else given)
        if len(leaves) != 1:
            raise ConfigError(
                f"train_dataloader returned {len(leaves)} loaders, and only the position of one "
                "can be kept",
                "return one loader, over a torch.utils.data.ConcatDataset or StackDataset",
            )
        exact = [self._train_loader(leaves[0])]
        if combined is not None:
            combined.flattened = exact
            return combined
        return tree_unflatten(exact, spec)

    def _train_loader(self, loader: Any) -> Any:
        may_shuffle = not cast("Any", self._trainer).overfit_batches
        return self.state.train_loader(loader, epoch=self._epoch, may_shuffle=may_shuffle)

    def epoch_begins(self, epoch: int) -> None:
        """The next iteration of the train data is `epoch`."""
        self.state.epoch_begins(epoch)

    def evaluation_loaders(self, given: Any) -> Any:
        """What `val_dataloader` or `test_dataloader` returned, dealt out over the ranks."""
        combined = given if isinstance(given, CombinedLoader) else None
        leaves, spec = _tree_flatten(combined.iterables if combined else given)
        exact = [
            self.state.evaluation_loader(leaf) if isinstance(leaf, DataLoader) else leaf
            for leaf in leaves
        ]
        if combined is not None:
            combined.flattened = exact
            return combined
        return tree_unflatten(exact, spec)

    # -- steps --------------------------------------------------------------------------------

    def restores(self) -> bool:
        """Whether a checkpoint was loaded and waits for `restore`."""
        return self._loaded is not None

    def was_over(self) -> bool:
        """Whether the checkpoint that was loaded is that of a training that came to its end."""
        return self._loaded is not None and bool(self._loaded.own["over"])

    def restore(self) -> bool:
        """Put back what Lightning does not; returns whether a validation is still to be done."""
        loaded, self._loaded = self._loaded, None
        assert loaded is not None
        same_world = loaded.manifest.world_size == self.state.rank.world_size
        restore_inside(self._trainer, loaded.own["inside"], same_world=same_world)
        return bool(loaded.own["validation_pending"])

    def rewrite(self, checkpoint: dict[str, Any]) -> None:
        """Turn the counts of micro batches in a loaded checkpoint into those of our shape."""
        if self._loaded is None:
            return
        old, new = self._loaded.manifest.accumulate, self.state.rank.batch.accumulate
        if old == new:
            return
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        for tracker in (progress["total"], progress["current"]):
            for name, count in tracker.items():
                tracker[name] = -(-count // old) * new

    def begins(self) -> None:
        """The first step comes."""
        self.state.buckets.begin(model=cast("Any", self._trainer.strategy.model))
        self.controller.begin(self._trainer.global_step)

    def validation_begins(self) -> None:
        """Ready to leave a long validation with the state from before it."""
        trainer = self._trainer
        val_loop = trainer.fit_loop.epoch_loop.val_loop
        trainer.validating = True
        val_loop.setup_data()
        trainer.training = True
        if val_loop.skip:
            return
        at_boundary = not trainer.fit_loop.epoch_loop._should_accumulate()
        self._evaluation_begins(
            val_loop.max_batches,
            snapshot=at_boundary,
            may_leave=at_boundary and not _saves_shards(trainer.strategy),
        )

    def boundary(self) -> None:
        """The optimizer stepped, and everything that belongs to that step is done."""
        self.controller.boundary(self._trainer.global_step, self.snapshot, over=self._is_over())

    def _is_over(self) -> bool:
        trainer, fit_loop = self._trainer, self._trainer.fit_loop
        if trainer.max_steps != -1 and trainer.global_step >= trainer.max_steps:
            return True
        last_batch = fit_loop.epoch_loop._num_ready_batches_reached()
        epochs = trainer.max_epochs
        return last_batch and epochs is not None and epochs != -1 and self._epoch + 1 >= epochs

    @property
    def _epoch(self) -> int:
        """The one that is being trained; `Trainer.current_epoch` lags behind at an epoch's end."""
        current: Any = self._trainer.fit_loop.epoch_progress.current
        return int(current.processed)

    def ends(self) -> None:
        """The training came to its end; its last state is kept."""
        self.controller.end(lambda: self.snapshot(over=True))

    def snapshot(self, *, validation_pending: bool = False, over: bool = False) -> Snapshot:
        """The whole state now; on all ranks, since a strategy may gather."""
        trainer, state = self._trainer, self.state
        batches = trainer.fit_loop.epoch_loop.batch_progress.current.ready
        model = trainer._checkpoint_connector.dump_checkpoint(weights_only=False)
        sharded = _saves_shards(trainer.strategy)
        own = state.own(capture_inside(trainer), batches, over=over)
        return Snapshot(
            step=trainer.global_step,
            epoch=self._epoch,
            samples=state.samples(batches),
            model=model if state.rank.rank == 0 and not sharded else None,
            own={**own, "validation_pending": validation_pending},
            shards=_shard_writer(trainer.strategy, model) if sharded else None,
            parameters=frozenset(name for name, _ in trainer.lightning_module.named_parameters()),
        )

    # -- evaluations --------------------------------------------------------------------------

    def alone_begins(self, max_batches: list[int | float]) -> None:
        """A sanity check, or `trainer.validate` and `trainer.test`: nothing new to save."""
        self._evaluation_begins(max_batches, snapshot=False, may_leave=True)

    def _evaluation_begins(
        self, max_batches: list[int | float], *, snapshot: bool, may_leave: bool
    ) -> None:
        total = sum(max_batches)
        self._evaluated = 0
        self.controller.evaluation_begins(
            self._trainer.global_step,
            snapshot=(lambda: self.snapshot(validation_pending=True)) if snapshot else None,
            may_leave=may_leave,
            batches=0 if total == float("inf") else int(total),
        )

    def evaluation_batch(self) -> None:
        """One more batch was evaluated."""
        self._evaluated += 1
        self.controller.evaluation_batch(self._trainer.global_step, self._evaluated)


@dataclass
class _TrainSource(_DataLoaderSource):
    training: LightningAdapter

    def dataloader(self) -> Any:
        return self.training.train_loaders(super().dataloader())


@dataclass
class _EvaluationSource(_DataLoaderSource):
    training: LightningAdapter

    def dataloader(self) -> Any:
        return self.training.evaluation_loaders(super().dataloader())


class _CarefulReader(TorchCheckpointIO):
    """Reads with weights_only where the file lets it."""

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> dict[str, Any]:
        loaded: dict[str, Any] = load_tensors(Path(path))
        return loaded


def _do_nothing() -> None:
    pass


def _saves_shards(strategy: Strategy) -> bool:
    """Whether the strategy writes folders of its own (FSDP, ModelParallel, DeepSpeed)."""
    if getattr(strategy, "_state_dict_type", None) == "full":
        return False
    if getattr(strategy, "_save_distributed_checkpoint", True) is False:
        return False
    return type(strategy).save_checkpoint is not Strategy.save_checkpoint


def _shard_writer(strategy: Strategy, checkpoint: dict[str, Any]) -> Any:
    def write(folder: Path) -> None:
        strategy.save_checkpoint(checkpoint, folder)

    return write


class HpcTrainCallback(pl.Callback):
    """The hooks that Lightning offers to callbacks; `fit_with_resume` adds it."""

    def __init__(self, training: LightningAdapter) -> None:
        self._training = training

    @override
    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Before loops and optimizers are restored from it."""
        self._training.rewrite(checkpoint)

    @override
    def on_sanity_check_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The first evaluation, of a few batches."""
        self._training.controller.faults.at("sanity")
        val_loop = trainer.fit_loop.epoch_loop.val_loop
        val_loop.setup_data()
        self._training.alone_begins(val_loop.max_batches)

    @override
    def on_sanity_check_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Training comes."""
        self._training.controller.evaluation_ends(whole=False)

    @override
    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Only `trainer.validate`; inside a fit the epoch loop is asked earlier."""
        if trainer.state.fn == TrainerFn.VALIDATING:
            self._training.alone_begins(trainer.validate_loop.max_batches)

    @override
    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """`trainer.test`."""
        self._training.alone_begins(trainer.test_loop.max_batches)

    @override
    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        """A place to stop."""
        self._training.evaluation_batch()

    @override
    def on_test_batch_end(self, *_: Any, **__: Any) -> None:
        """A place to stop."""
        self._training.evaluation_batch()

    @override
    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Back to training."""
        if not trainer.sanity_checking:
            self._training.controller.evaluation_ends()

    @override
    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any, **__: Any) -> None:
        """A sign of life within an accumulation."""
        self._training.controller.heartbeat.batch = (
            trainer.fit_loop.epoch_loop.batch_progress.current.ready
        )

    @override
    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The last state is saved, while all ranks are here."""
        self._training.ends()
