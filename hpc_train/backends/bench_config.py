"""The config of a bench's run: the training's own, for a few steps and without traces in it."""

from __future__ import annotations

from typing import Any

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.load import LoadedConfig, with_values
from hpc_train.plan.bench_plan import bench_name, last_step, measured_steps
from hpc_train.plan.units import time_s

LONGEST = "0:30:00"  # of a job, unless --time says otherwise: a short one starts sooner


def bench_config(loaded: LoadedConfig, *, steps: int) -> LoadedConfig:
    """One run: measured, ended by itself, tried once, after the bench's other runs.

    Slurm's `singleton` (sbatch(1), --dependency) lets jobs of one name and user run one after
    another, so that they do not take the network and the nodes from each other.
    """
    config = loaded.config
    own = f"{config.slurm.dependency}," if config.slurm.dependency else ""
    values: dict[str, Any] = {
        "name": bench_name(config.name),
        "init_from": None,
        "init_leave_out": [],
        "slurm.dependency": f"{own}singleton",
        "slurm.spares": 0,
        "slurm.nodelist": None,  # it may name more nodes than a shape has
        "requeue.enabled": False,
        "checkpoint.every_n_minutes": None,
        "checkpoint.every_n_steps": None,
    }
    if config.slurm.time and loaded.origins.of("slurm.time") not in ("--time", COMMAND_LINE):
        limit_s, most_s = time_s(config.slurm.time), time_s(LONGEST) or 0
        values["slurm.time"] = LONGEST if (limit_s or most_s) >= most_s else config.slurm.time
    if config.script.path is None:
        values |= {
            "checkpoint.every_n_steps": measured_steps(steps)[-1],  # the save that is measured
            "loggers": ["csv"],
            "trainer.max_steps": last_step(steps),
            "trainer.max_epochs": -1,
            "trainer.limit_val_batches": 1,  # a schedule may read what a validation logs
            "trainer.num_sanity_val_steps": 0,
        }
        unwanted = ("max_time", "min_steps", "min_epochs", "fast_dev_run", "profiler")
        values |= {f"trainer.{key}": None for key in unwanted if key in config.trainer}
    return with_values(loaded, values, dict.fromkeys(values, "hpc-train bench"), without="sweep")
