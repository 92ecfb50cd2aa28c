"""A short training on one node that tells whether the long one can work."""

from __future__ import annotations

from hpc_train.config.load import LoadedConfig, with_values
from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Plan

SMOKE_STEPS = 3


def smoke_config(loaded: LoadedConfig, plan: Plan) -> LoadedConfig:
    """The config of one node's share of each batch for a few steps, and a little validation.

    Args:
        loaded: Of the whole training.
        plan: What follows from it; a rank takes as many samples at once as there.

    Raises:
        ConfigError: a script makes the Trainer.
    """
    if plan.script is not None:
        raise ConfigError(
            f"--smoke makes the Trainer take few steps, and that of {plan.script.path} is its own",
            "give the script an argument for it, and --after the run that tries it",
        )
    values = {
        "name": f"{loaded.config.name}-smoke",
        "global_batch_size": plan.batch.micro_batch_size * plan.shape.ranks_per_node,
        "slurm.nodes": 1,
        "slurm.spares": 0,
        "slurm.nodelist": None,  # it may name more nodes than one
        "trainer.max_steps": SMOKE_STEPS,
        "trainer.limit_train_batches": SMOKE_STEPS,  # so that the epoch ends, and is validated
        "trainer.limit_val_batches": 2,
    }
    return with_values(loaded, values, dict.fromkeys(values, "--smoke"), without="sweep")
