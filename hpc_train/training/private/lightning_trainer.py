"""What a Trainer does not say, or does by itself where hpc-train does it instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpc_train.training.private.lightning import (
    PACKAGE,
    CombinedLoader,
    Strategy,
    _DataLoaderSource,
    pl,
)

__all__ = [
    "LOGGER_OF_HINTS",
    "change_loaders",
    "current_epoch",
    "dump_checkpoint",
    "evaluation_batches",
    "is_accumulating",
    "is_last_batch",
    "leave_signals_alone",
    "rescale_batches",
    "saves_shards",
    "shard_writer",
    "train_batches",
    "validation_batches",
]

Loaders = Callable[[list[Any]], list[Any]]
LOGGER_OF_HINTS = f"{PACKAGE}.utilities.rank_zero"  # of logging


class _ChangedSource(_DataLoaderSource):
    """Where a loop gets its loaders from: those of the user, changed."""

    def __init__(self, name: str, mode: Any, change: Loaders) -> None:
        super().__init__(None, name)
        self._mode = mode
        self._change = change

    def dataloader(self) -> Any:
        given = super().dataloader()
        loaders = given if isinstance(given, CombinedLoader) else CombinedLoader(given, self._mode)
        loaders.flattened = self._change(loaders.flattened)
        return loaders


def change_loaders(trainer: pl.Trainer, *, train: Loaders, evaluation: Loaders) -> None:
    """Ask `train` and `evaluation` what to take in place of the user's loaders, before a fit.

    Args:
        train: Gets all loaders in what `train_dataloader` returned, and gives as many.
    """
    fit_loop = trainer.fit_loop
    fit_loop._data_source = _ChangedSource("train_dataloader", "max_size_cycle", train)
    for loop, name in (
        (fit_loop.epoch_loop.val_loop, "val_dataloader"),
        (trainer.validate_loop, "val_dataloader"),
        (trainer.test_loop, "test_dataloader"),
    ):
        loop._data_source = _ChangedSource(name, "sequential", evaluation)


def leave_signals_alone(trainer: pl.Trainer) -> None:
    """Lightning's handlers communicate from inside a signal handler: a deadlock with a step."""
    connector: Any = trainer._signal_connector
    connector.register_signal_handlers = lambda: None


def current_epoch(trainer: pl.Trainer) -> int:
    """The one that is being trained; `Trainer.current_epoch` lags behind at an epoch's end."""
    current: Any = trainer.fit_loop.epoch_progress.current
    return int(current.processed)


def train_batches(trainer: pl.Trainer) -> int:
    """Micro batches of this rank since the epoch began, the one at hand included."""
    return int(trainer.fit_loop.epoch_loop.batch_progress.current.ready)


def is_accumulating(trainer: pl.Trainer) -> bool:
    """Whether the optimizer does not step after the batch at hand."""
    return bool(trainer.fit_loop.epoch_loop._should_accumulate())


def is_last_batch(trainer: pl.Trainer) -> bool:
    """Whether the batch at hand is the last of its epoch."""
    return bool(trainer.fit_loop.epoch_loop._num_ready_batches_reached())


def validation_batches(trainer: pl.Trainer) -> list[int | float]:
    """Batches of each validation loader that a fit has; empty where there is none to do."""
    loop, stage = trainer.fit_loop.epoch_loop.val_loop, trainer.state.stage
    if not trainer.sanity_checking:
        trainer.validating = True
    loop.setup_data()
    batches = [] if loop.skip else list(loop.max_batches)
    trainer.state.stage = stage
    return batches


def evaluation_batches(trainer: pl.Trainer) -> list[int | float]:
    """The same for `Trainer.validate` and `Trainer.test`."""
    loop = trainer.test_loop if trainer.testing else trainer.validate_loop
    return list(loop.max_batches)


def dump_checkpoint(trainer: pl.Trainer) -> dict[str, Any]:
    """What `Trainer.save_checkpoint` would write. Collective."""
    return trainer._checkpoint_connector.dump_checkpoint(weights_only=False)


def rescale_batches(checkpoint: dict[str, Any], *, old: int, new: int) -> None:
    """Turn a checkpoint's counts of micro batches, of `old` a step, into those of `new`."""
    progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    for tracker in (progress["total"], progress["current"]):
        for name, count in tracker.items():
            tracker[name] = -(-count // old) * new


def saves_shards(strategy: Strategy) -> bool:
    """Whether the strategy writes folders of its own (FSDP, ModelParallel, DeepSpeed)."""
    if getattr(strategy, "_state_dict_type", None) == "full":
        return False
    if getattr(strategy, "_save_distributed_checkpoint", True) is False:
        return False
    return type(strategy).save_checkpoint is not Strategy.save_checkpoint


def shard_writer(strategy: Strategy, checkpoint: dict[str, Any]) -> Callable[[Path], None]:
    """Writes this rank's part of `checkpoint` into a folder; collective."""
    return lambda folder: strategy.save_checkpoint(checkpoint, folder)
