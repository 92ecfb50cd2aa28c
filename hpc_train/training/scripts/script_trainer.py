"""The arguments of a script's own Trainer, brought into line with where the ranks are.

Nothing of the training's meaning is changed; what a script asks for and cannot get is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.plan.world import World
from hpc_train.training.devices import Device
from hpc_train.training.environment import HpcEnvironment
from hpc_train.training.private.lightning import ClusterEnvironment, Strategy, pl
from hpc_train.training.scripts.script_shape import (
    check_counts,
    fitting_strategy,
    kept_plugins,
    told,
)
from hpc_train.training.trainer import place_arguments, strategy_of


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
    check_counts(given, world, "Trainer")
    kept, dropped = kept_plugins(given.get("plugins"), ClusterEnvironment)
    settled = {
        **given,
        **place_arguments(world, device),
        "strategy": _strategy(given.get("strategy"), world, device),
        "plugins": [*kept, HpcEnvironment(world)],
    }
    wants_bar = given.get("enable_progress_bar") is not None or _has_bar(given.get("callbacks"))
    if not on_terminal and not wants_bar:  # LightningCLI gives None
        settled["enable_progress_bar"] = False
    return settled, told("Trainer", given, settled, dropped=dropped, world=world)


def _has_bar(callbacks: Any) -> bool:
    """Lightning refuses a bar among the callbacks where there is to be none."""
    given = callbacks if isinstance(callbacks, Sequence) else [callbacks]
    return any(isinstance(item, pl.callbacks.ProgressBar) for item in given)


def _strategy(asked: Any, world: World, device: Device) -> Any:
    if isinstance(asked, Strategy):
        return fitting_strategy(asked, pl.strategies, world)
    return strategy_of(asked, world, device)
