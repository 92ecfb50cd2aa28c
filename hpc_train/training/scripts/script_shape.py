"""What a script's Trainer or Fabric asks for, held against where the ranks are; imports neither."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hpc_train.config.trainer_args import starts_processes
from hpc_train.errors import ConfigError
from hpc_train.plan.gpus_given import gpus_were_given
from hpc_train.plan.plan import Shape
from hpc_train.plan.world import World
from hpc_train.training.private.launch_method import launch_method

_GPU = ("gpu", "cuda")


def asked_accelerator(given: Mapping[str, Any], shape: Shape) -> str:
    """What one with these arguments is to train on, in words of `choose_device`."""
    asked = given.get("accelerator") or "auto"
    if not isinstance(asked, str):
        asked = type(asked).__name__.removesuffix("Accelerator")
    asked = asked.lower()
    if shape.gpus_per_node == 0 and asked in ("auto", "cpu", *_GPU):
        return "cpu"  # script.accelerator: cpu
    return "gpu" if asked == "auto" and gpus_were_given(os.environ) else asked


def check_counts(given: Mapping[str, Any], world: World, of: str) -> None:
    """Refuse what asks for more devices or nodes than there are.

    Args:
        of: "Trainer" or "Fabric".
    """
    for name, has, option in (
        ("devices", world.ranks_per_node, "--gpus"),
        ("num_nodes", world.nodes, "--nodes"),
    ):
        asked = _count(given.get(name))
        if asked is not None and asked > has:
            raise ConfigError(
                f"the script asks for {of}({name}={asked}), and this run has {has}",
                f"submit it with {option} {asked}, or leave {name} out of the {of}",
            )


def kept_plugins(plugins: Any, environments: type) -> tuple[list[Any], bool]:
    """All but cluster environments, since ours takes its place; whether one was among them."""
    listed = plugins if isinstance(plugins, list) else [plugins] if plugins else []
    kept = [item for item in listed if not isinstance(item, environments)]
    return kept, len(kept) < len(listed)


def fitting_strategy(asked: Any, strategies: Any, world: World) -> Any:
    """An object of a strategy, without a cluster environment of its own.

    Args:
        strategies: Module of the package that the script uses.

    Raises:
        ConfigError: it cannot be where these ranks are.
    """
    name = type(asked).__name__
    if starts_processes(launch_method(asked)):
        raise ConfigError(
            f"the script's {name} starts processes by itself, and hpc-train has started them",
            "leave out start_method",
        )
    if isinstance(asked, strategies.SingleDeviceStrategy) and world.world_size > 1:
        raise ConfigError(
            f"the script's {name} trains on one device, and this run has {world.world_size} ranks",
            'write strategy="auto", or submit it with --nodes 1 --gpus 1',
        )
    if isinstance(asked, strategies.ParallelStrategy):
        asked.cluster_environment = None  # ours comes by the plugins; both would be refused
    return asked


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


def told(
    of: str, given: Mapping[str, Any], settled: Mapping[str, Any], *, dropped: bool, world: World
) -> str:
    """One line: what the script's Trainer or Fabric asked for, and what it gets."""
    names = ("accelerator", "devices", "num_nodes", "strategy")
    asked = [f"{name}={_shown(given[name])}" for name in names if given.get(name) is not None]
    asked += ["a cluster environment of its own"] if dropped else []
    what = f"asked for {', '.join(asked)}" if asked else "left its place open"
    nodes = f"{world.nodes} node{'s' if world.nodes > 1 else ''}"
    gets = f"{nodes} x {world.ranks_per_node} on {_shown(settled['accelerator'])}"
    return f"the script's {of} {what}; it gets {gets}, strategy {_shown(settled['strategy'])}"


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, (str, int, list, tuple)) else type(value).__name__
