"""The Trainer that a plan means on this device in this world."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from torch import nn

from hpc_train.config.trainer_args import ON_GPUS, starts_processes
from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Plan
from hpc_train.plan.world import World
from hpc_train.training.build import build, spec_of
from hpc_train.training.devices import Device, lightning_accelerator
from hpc_train.training.environment import HpcEnvironment
from hpc_train.training.loggers import ProgressLines
from hpc_train.training.private.lightning import (
    PACKAGE,
    Checkpoint,
    CUDAAccelerator,
    Logger,
    MisconfigurationException,
    StrategyRegistry,
    pl,
)
from hpc_train.training.private.lightning_trainer import LOGGER_OF_HINTS
from hpc_train.training.private.torch_data import is_batch_norm
from hpc_train.training.resume.seeds import choose_determinism


def trainer_arguments(
    plan: Plan,
    *,
    world: World,
    device: Device,
    model: pl.LightningModule,
    loggers: list[Logger],
    root: str,
    on_terminal: bool,
) -> dict[str, Any]:
    """Lightning's arguments: the config's own, and what follows from shape, device and world.

    Args:
        root: Folder for whatever a callback writes without being told where.
        on_terminal: A progress bar can be seen; otherwise lines are written.

    Raises:
        ConfigError: a strategy or callback that cannot be.
    """
    given = dict(plan.training.trainer)
    arguments: dict[str, Any] = {
        "default_root_dir": root,
        "enable_progress_bar": on_terminal,
        **choose_determinism(reproducible=plan.training.reproducible),
        **_built(given),
    }
    callbacks = list(arguments.get("callbacks") or [])
    if given.get("enable_progress_bar") is None:
        callbacks = _fitting_bars(callbacks, on_terminal=on_terminal)
        arguments["enable_progress_bar"] = on_terminal or any(map(_is_bar, callbacks))
    if not arguments["enable_progress_bar"]:
        callbacks.append(ProgressLines(plan.batch.global_batch_size))
    if device.kind == "cuda" and world.world_size > 1:
        arguments.setdefault("sync_batchnorm", has_batch_norm(model))
    return {
        **arguments,
        **place_arguments(world, device),
        "strategy": strategy_of(given.get("strategy"), world, device),
        "plugins": [*(arguments.get("plugins") or []), HpcEnvironment(world)],
        "logger": loggers or False,
        "callbacks": callbacks,
        "accumulate_grad_batches": plan.batch.accumulate,
        "enable_checkpointing": any(isinstance(item, Checkpoint) for item in callbacks),
    }


def _fitting_bars(callbacks: list[Any], *, on_terminal: bool) -> list[Any]:
    """Without Lightning's own bars where none can be seen: `ProgressLines` says what they would."""
    bars = (pl.callbacks.TQDMProgressBar, pl.callbacks.RichProgressBar)
    return callbacks if on_terminal else [it for it in callbacks if type(it) not in bars]


def _is_bar(callback: Any) -> bool:
    return isinstance(callback, pl.callbacks.ProgressBar)


def place_arguments(world: World, device: Device) -> dict[str, Any]:
    """What follows from where the ranks are: samples are dealt out by hpc-train, for example."""
    return {
        "accelerator": lightning_accelerator(device, CUDAAccelerator),
        "devices": world.ranks_per_node,
        "num_nodes": world.nodes,
        "use_distributed_sampler": False,
    }


def quiet_lightning() -> None:
    """Leave out what Lightning says of things that hpc-train has decided or says better."""
    told_elsewhere = ("GPU available", "TPU available", "HPU available", "\U0001f4a1")
    logging.getLogger(LOGGER_OF_HINTS).addFilter(
        lambda record: not record.getMessage().startswith(told_elsewhere)
    )
    # The ranks have been started; how is checked by `World.from_env`.
    warnings.filterwarnings("ignore", ".*`srun` command is available on your system.*")
    warnings.filterwarnings("ignore", ".*isinstance.treespec, LeafSpec.*")
    # A later attempt goes on in the folder of its ModelCheckpoints.
    warnings.filterwarnings("ignore", "Checkpoint directory .* exists and is not empty.")


def make_trainer(arguments: Mapping[str, Any]) -> pl.Trainer:
    """Build it.

    Raises:
        ConfigError: Lightning refuses the arguments, in its own words.
    """
    try:
        return pl.Trainer(**arguments)
    except (MisconfigurationException, ValueError, TypeError) as error:
        installed = version(PACKAGE.partition(".")[0])
        raise ConfigError(
            f"trainer: Lightning {installed} refuses these arguments: {error}",
            "see the keys under trainer in the config",
        ) from error


def has_batch_norm(model: nn.Module) -> bool:
    """Whether any layer normalises over the batch, and so over what its rank alone sees."""
    return any(map(is_batch_norm, model.modules()))


def batch_norm_note(model: nn.Module, world: World, device: Device) -> str:
    """What to say where statistics stay a rank's own: torch's SyncBatchNorm needs GPUs."""
    if device.kind == "cuda" or world.world_size == 1 or not has_batch_norm(model):
        return ""
    return (
        "NOTE: BatchNorm uses each rank's own samples: torch's SyncBatchNorm needs GPUs "
        "(torch.nn.SyncBatchNorm)"
    )


def _built(given: Mapping[str, Any]) -> dict[str, Any]:
    """The config's arguments with the classes among them made into objects."""
    arguments = dict(given)
    for name in ("callbacks", "plugins"):
        if values := arguments.get(name):
            listed = values if isinstance(values, list) else [values]
            keys = [f"trainer.{name}[{index}]" for index in range(len(listed))]
            arguments[name] = list(map(_object, listed, keys))
    if spec_of(arguments.get("profiler")) is not None:
        arguments["profiler"] = _object(arguments["profiler"], "trainer.profiler")
    for callback in arguments.get("callbacks") or []:
        if not isinstance(callback, pl.Callback):
            raise ConfigError(
                f"trainer.callbacks: {type(callback).__module__}.{type(callback).__name__} is no "
                f"Callback of {PACKAGE}",
                f"derive it from {PACKAGE}.Callback: the model's package, and never both",
            )
    return arguments


def _object(value: Any, key: str) -> Any:
    spec = spec_of(value)
    if spec is None:
        raise ConfigError(f"{key}: {value!r} names no class", "write {class_path, init_args}")
    return build(spec, key=key)


def strategy_of(value: Any, world: World, device: Device) -> Any:
    """A name that Lightning knows, `{name, its arguments}` or `{class_path, init_args}`.

    Raises:
        ConfigError: for an unknown one, or one that cannot run here.
    """
    spec = spec_of(value)
    if spec is not None:
        return build(spec, key="trainer.strategy")
    options = dict(value) if isinstance(value, Mapping) else {}
    name = str(options.pop("name", "auto") if options else value or "auto").lower()
    if name == "auto":
        name = "ddp" if world.world_size > 1 else "auto"
    _check_strategy(name, device)
    if not options:
        return name
    try:
        registered = StrategyRegistry[name]
        return registered["strategy"](**{**registered["init_params"], **options})
    except TypeError as error:
        raise ConfigError(
            f"trainer.strategy: {name} refuses its arguments: {error}",
            f"write strategy: {{name: {name}, ...}} with arguments of "
            f"{registered['strategy'].__name__}",
        ) from error


def _check_strategy(name: str, device: Device) -> None:
    known = ["auto", *(it for it in StrategyRegistry.available_strategies() if "xla" not in it)]
    usable = [it for it in known if not starts_processes(it)]
    problem = ""
    if name.startswith("deepspeed") and importlib.util.find_spec("deepspeed") is None:
        problem = f"{name} needs the package deepspeed, which is not installed"
        fix = "pip install deepspeed, or write strategy: fsdp"
    elif starts_processes(name):
        problem = f"{name} starts processes by itself, and hpc-train has started them"
        fix = "write strategy: ddp"
    elif name not in known:
        problem, fix = f"Lightning knows no {name!r}", f"one of {', '.join(usable)}"
    elif device.kind == "cpu" and name.startswith(ON_GPUS):
        problem = f"{name} needs GPUs, and this run trains on the CPU"
        fix = "write strategy: ddp, or accelerator: gpu"
    if problem:
        raise ConfigError(f"trainer.strategy: {problem}", fix)
