"""A script's own Fabric, brought into line with where the ranks are, as a Trainer is.

Its loop is the script's, so it is followed as a plain script; see `plain_script`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from hpc_train.config.trainer_args import starts_processes
from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.plan.world import World
from hpc_train.training.devices import Device, lightning_accelerator
from hpc_train.training.prepare import device_of_rank
from hpc_train.training.private.after_import import after_import
from hpc_train.training.rank import Rank
from hpc_train.training.scripts.script_shape import (
    asked_accelerator,
    check_counts,
    fitting_strategy,
    kept_plugins,
    told,
)
from hpc_train.training.scripts.unshared_steps import tell_fabric
from hpc_train.training.world_environment import WorldEnvironment

_EXACT = "it goes on by the script's own checkpoint (exact to the bit: hpc_train.Session)"


def follow_fabric(rank: Rank, plan: Plan, world: World) -> None:
    """Meet each Fabric, of whichever of Lightning's packages, as it is imported."""

    def meet(module: ModuleType) -> None:
        kind: Any = module.Fabric
        make = kind.__init__

        @functools.wraps(make)
        def init(self: Any, **given: Any) -> None:
            try:
                wanted = asked_accelerator(given, plan.shape)
                folder = rank.here.attempt_dir
                device = device_of_rank(
                    wanted, given.get("precision"), world, folder, of_script=True
                )
                settled, said = settled_fabric(given, module, world=world, device=device)
            except HpcTrainError as error:  # nothing of the script may catch it
                rank.end(error)
                raise
            if world.rank == 0:
                print(f"{said}; {_EXACT}", flush=True)  # noqa: T201 - a rank's log
            tell_fabric()
            make(self, **settled)

        kind.__init__ = init

    after_import(dict.fromkeys(("lightning_fabric.fabric", "lightning.fabric.fabric"), meet))


def settled_fabric(
    given: Mapping[str, Any], module: Any, *, world: World, device: Device
) -> tuple[dict[str, Any], str]:
    """The arguments to make a Fabric with, and a line that says what was asked and is given.

    Args:
        given: What the script gives, by name.
        module: That of the class: it has the classes of its package.

    Raises:
        ConfigError: the script asks for what this allocation cannot give.
    """
    check_counts(given, world, "Fabric")
    package = importlib.import_module(module.__name__.removesuffix(".fabric"))
    environments = package.plugins.environments.ClusterEnvironment
    kept, dropped = kept_plugins(given.get("plugins"), environments)
    ours = type("HpcEnvironment", (WorldEnvironment, environments), {})
    settled = {
        **given,
        "accelerator": lightning_accelerator(device, package.accelerators.CUDAAccelerator),
        "devices": world.ranks_per_node,
        "num_nodes": world.nodes,
        "strategy": _strategy(given.get("strategy"), package.strategies, world),
        "plugins": [*kept, ours(world)],
    }
    return settled, told("Fabric", given, settled, dropped=dropped, world=world)


def _strategy(asked: Any, strategies: Any, world: World) -> Any:
    if isinstance(asked, strategies.Strategy):
        return fitting_strategy(asked, strategies, world)
    name = str(asked or "auto").lower()
    if name == "dp" or starts_processes(name):
        raise ConfigError(
            f"the script asks for Fabric(strategy={name!r}), which starts its ranks by itself or "
            "needs none, and hpc-train has started them",
            "write strategy='ddp'",
        )
    return "ddp" if name == "auto" and world.world_size > 1 else name
