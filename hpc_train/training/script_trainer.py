"""The arguments of a script's own Trainer, brought into line with where the ranks are.

Nothing of the training's meaning is changed; what a script asks for and cannot get is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.trainer_args import starts_processes
from hpc_train.errors import ConfigError
from hpc_train.plan.gpus_given import gpus_were_given
from hpc_train.plan.plan import Shape
from hpc_train.plan.world import World
from hpc_train.training.devices import Device
from hpc_train.training.environment import HpcEnvironment
from hpc_train.training.private.lightning import ClusterEnvironment, Strategy, pl
from hpc_train.training.private.lightning_trainer import launch_method
from hpc_train.training.trainer import place_arguments, strategy_of

__all__ = ["asked_accelerator", "settled_arguments"]

_GPU = ("gpu", "cuda")


def asked_accelerator(given: Mapping[str, Any], shape: Shape) -> str:
    """What a Trainer with these arguments is to train on, in words of `choose_device`."""
    asked = given.get("accelerator") or "auto"
    if not isinstance(asked, str):
        asked = type(asked).__name__.removesuffix("Accelerator")
    asked = asked.lower()
    if shape.gpus_per_node == 0 and asked in ("auto", "cpu", *_GPU):
        return "cpu"  # script.accelerator: cpu
    return "gpu" if asked == "auto" and gpus_were_given(os.environ) else asked


def settled_arguments(
    given: Mapping[str, Any], *, world: World, device: Device, on_terminal: bool
) -> tuple[dict[str, Any], str]:
    """The arguments to make the Trainer with, and a line that says what was asked and is given.

    Args:
        given: What the script gives, by name.
        on_terminal: A progress bar can be seen.

    Raises:
        ConfigError: the script asks for what this allocation cannot give.
    """
    _check_count("devices", _count(given.get("devices")), world.ranks_per_node, "--gpus")
    _check_count("num_nodes", _count(given.get("num_nodes")), world.nodes, "--nodes")
    plugins = given.get("plugins") or []
    plugins = plugins if isinstance(plugins, list) else [plugins]
    kept = [item for item in plugins if not isinstance(item, ClusterEnvironment)]
    settled = {
        **given,
        **place_arguments(world, device),
        "strategy": _strategy(given.get("strategy"), world, device),
        "plugins": [*kept, HpcEnvironment(world)],
    }
    wants_bar = given.get("enable_progress_bar") is not None or _has_bar(given.get("callbacks"))
    if not on_terminal and not wants_bar:  # LightningCLI gives None
        settled["enable_progress_bar"] = False
    return settled, _told(given, settled, dropped=len(plugins) - len(kept), world=world)


def _has_bar(callbacks: Any) -> bool:
    """Lightning refuses a bar among the callbacks where there is to be none."""
    given = callbacks if isinstance(callbacks, Sequence) else [callbacks]
    return any(isinstance(item, pl.callbacks.ProgressBar) for item in given)


def _count(value: Any) -> int | None:
    """How many devices or nodes; None where the script leaves it open."""
    if isinstance(value, str):
        text = value.strip()
        if text.lstrip("-").isdigit():
            value = int(text)
        elif "," in text:
            value = [part for part in text.split(",") if part.strip()]
            value = -1 if value == ["-1"] else value
    if isinstance(value, (list, tuple)):
        return len(value)
    return value if isinstance(value, int) and value >= 0 else None


def _check_count(name: str, asked: int | None, given: int, option: str) -> None:
    if asked is not None and asked > given:
        raise ConfigError(
            f"the script asks for Trainer({name}={asked}), and this run has {given}",
            f"submit it with {option} {asked}, or leave {name} out of the Trainer",
        )


def _strategy(asked: Any, world: World, device: Device) -> Any:
    if not isinstance(asked, Strategy):
        return strategy_of(asked, world, device)
    if starts_processes(launch_method(asked)):
        raise ConfigError(
            f"the script's {type(asked).__name__} starts processes by itself, and hpc-train has "
            "started them",
            "leave out start_method",
        )
    if isinstance(asked, pl.strategies.SingleDeviceStrategy) and world.world_size > 1:
        raise ConfigError(
            f"the script's {type(asked).__name__} trains on one device, and this run has "
            f"{world.world_size} ranks",
            'write strategy="auto", or submit it with --nodes 1 --gpus 1',
        )
    if isinstance(asked, pl.strategies.ParallelStrategy):
        asked.cluster_environment = None  # ours comes by the plugins; both would be refused
    return asked


def _told(
    given: Mapping[str, Any], settled: Mapping[str, Any], *, dropped: int, world: World
) -> str:
    names = ("accelerator", "devices", "num_nodes", "strategy")
    asked = [f"{name}={_shown(given[name])}" for name in names if given.get(name) is not None]
    asked += ["a cluster environment of its own"] if dropped else []
    what = f"asked for {', '.join(asked)}" if asked else "left its place open"
    nodes = f"{world.nodes} node{'s' if world.nodes > 1 else ''}"
    gets = f"{nodes} x {world.ranks_per_node} on {_shown(settled['accelerator'])}"
    return f"the script's Trainer {what}; it gets {gets}, strategy {_shown(settled['strategy'])}"


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, (str, int, list, tuple)) else type(value).__name__
