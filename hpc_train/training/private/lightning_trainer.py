"""What a Trainer does not say, or does by itself where hpc-train does it instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from hpc_train.config.fit.refused_callbacks import REFUSED, is_lightnings
from hpc_train.errors import ConfigError
from hpc_train.training.private.lightning import (
    PACKAGE,
    CombinedLoader,
    Strategy,
    _DataLoaderSource,
    pl,
)

Loaders = Callable[[list[Any]], list[Any]]
_LENGTHS = ("total_steps", "T_max", "total_iters")  # of torch's schedulers
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


def change_loaders(
    trainer: pl.Trainer, *, train: Loaders, evaluation: Loaders, prediction: Loaders | None
) -> None:
    """Ask what to take in place of the user's loaders, before a fit or an evaluation.

    Args:
        train: Gets all loaders in what `train_dataloader` returned, and gives as many.
        prediction: None leaves those to Lightning.
    """
    fit_loop = trainer.fit_loop
    fit_loop._data_source = _ChangedSource("train_dataloader", "max_size_cycle", train)
    for loop, name in (
        (fit_loop.epoch_loop.val_loop, "val_dataloader"),
        (trainer.validate_loop, "val_dataloader"),
        (trainer.test_loop, "test_dataloader"),
    ):
        loop._data_source = _ChangedSource(name, "sequential", evaluation)
    if prediction is not None:
        trainer.predict_loop._data_source = _ChangedSource(
            "predict_dataloader", "sequential", prediction
        )


def leave_signals_alone(trainer: pl.Trainer) -> None:
    """Lightning's handlers communicate from inside a signal handler: a deadlock with a step."""
    connector: Any = trainer._signal_connector
    connector.register_signal_handlers = lambda: None


def around_prepare_data(
    trainer: pl.Trainer, around: Callable[[], AbstractContextManager[None]]
) -> None:
    """Call the user's `prepare_data` within `around()`: it runs on one rank a node alone."""
    connector: Any = trainer._data_connector

    def within() -> None:
        with around():
            type(connector).prepare_data(connector)

    connector.prepare_data = within


def widen(trainer: pl.Trainer, module: pl.LightningModule) -> None:
    """Make numbers of 64 bits of the parameters before a checkpoint's are read into them.

    Lightning does it behind that (`Strategy.setup`), so that what was saved with 64 bits is rounded
    to 32 at each restart.
    """
    if trainer.precision == "64-true":
        trainer.precision_plugin.convert_module(module)


@contextmanager
def distributed_sampler(trainer: pl.Trainer, *, use: bool) -> Iterator[None]:
    """Lightning's own sharing out of samples, as `Trainer(use_distributed_sampler=...)`."""
    connector = trainer._accelerator_connector
    before, connector.use_distributed_sampler = connector.use_distributed_sampler, use
    try:
        yield
    finally:
        connector.use_distributed_sampler = before


def is_tuning(trainer: pl.Trainer) -> bool:
    """Whether a Tuner runs this fit, for trials that it takes back."""
    return any(getattr(it, "_early_exit", False) for it in trainer.callbacks)  # type: ignore[attr-defined]


def check_tuners(trainer: pl.Trainer, *, is_script: bool) -> None:
    """Refuse callbacks that take trial steps, or change the accumulation, inside of a fit.

    Raises:
        ConfigError: with what a script, or a config, has in their place.
    """
    for item in trainer.callbacks:  # type: ignore[attr-defined]
        kinds = [it.__name__ for it in type(item).__mro__ if is_lightnings(it.__module__)]
        name = next((it for it in kinds if it in REFUSED), "")
        if name and is_script:
            raise ConfigError(
                f"the callback {type(item).__name__} takes steps within a fit, or changes their "
                "size, so that the fit cannot go on exactly",
                "use Tuner(trainer) before the fit, and accumulate_grad_batches=N for all epochs",
            )
        if name:
            why, fix = REFUSED[name]
            raise ConfigError(f"the callback {type(item).__name__} {why}", fix)


def has_optimizers(trainer: pl.Trainer) -> bool:
    """Whether configure_optimizers gave any: for None Lightning takes one that does nothing."""
    return any(type(it).__name__ != "_MockOptimizer" for it in trainer.optimizers)


def version_of(tensor: Tensor) -> int:
    """How often a tensor was changed in place, as autograd counts it."""
    return int(tensor._version)


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


def knows_length(trainer: pl.Trainer) -> bool:
    """Whether the batches of an epoch are counted before; else one more is asked for at its end."""
    fetcher = trainer.fit_loop._data_fetcher
    return fetcher is not None and fetcher.length is not None


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
    """The same for `Trainer.validate`, `Trainer.test` and `Trainer.predict`."""
    if trainer.predicting:
        return list(trainer.predict_loop.max_batches)
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


def reopen(checkpoint: dict[str, Any], *, whole: bool) -> None:
    """Let a checkpoint from a fit's end be one from which more steps can follow.

    Args:
        whole: The last epoch was whole, and the next one begins; else it goes on in its middle.
    """
    loops = checkpoint["loops"]["fit_loop"]
    if whole:
        batches = loops["epoch_loop.batch_progress"]
        batches["is_last_batch"] = False
        counts = [batches["current"], loops["epoch_loop.val_loop.batch_progress"]["total"]]
        for tracker in counts:
            tracker.update(dict.fromkeys(tracker, 0))
        return
    for tracker in (loops["epoch_progress"]["total"], loops["epoch_progress"]["current"]):
        tracker["processed"] -= 1
        tracker["completed"] -= 1


def schedules(trainer: pl.Trainer) -> list[dict[str, Any]]:
    """The learning rate schedules: class, for how many steps or epochs it was built, which."""
    told = []
    for config in trainer.lr_scheduler_configs:
        built = [getattr(config.scheduler, name, None) for name in _LENGTHS]
        length = next((int(it) for it in built if isinstance(it, (int, float))), None)
        name = type(config.scheduler).__name__
        told.append({"name": name, "length": length, "interval": config.interval})
    return told


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
