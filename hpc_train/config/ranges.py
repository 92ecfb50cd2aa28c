"""The range of every number of the schema: what is outside of it cannot be meant."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hpc_train.config.keys import OF_THE_SCRIPT
from hpc_train.config.schema import Config

_COUNT = 2**31 - 1
_YEAR_S = 366 * 24 * 3600.0
_YEAR_H = 366 * 24.0
_NEVER = "write 1 or more, or null for never"
_POSITIVE = "write a number of seconds above 0"


@dataclass(frozen=True)
class Range:
    """Least and most that are allowed, and what to write where a value is below."""

    least: float
    most: float
    below: str = ""


RANGES: Mapping[str, Range] = {
    "global_batch_size": Range(1, _COUNT),
    "micro_batch_size": Range(1, _COUNT),
    "seed": Range(0, 2**32 - 1),  # Lightning's seed_everything: numpy takes 32 bits
    "script.lr_ranks": Range(1, _COUNT),
    "script.warmup_steps": Range(0, _COUNT),
    "slurm.nodes": Range(1, 100_000, "a run needs a node: write 1 or more"),
    "slurm.gpus_per_node": Range(1, 1024),  # what to write below it: `_ranks_a_node`
    "slurm.spares": Range(0, 100_000),
    "slurm.cpus_per_gpu": Range(1, 65_533),  # 16 bits in Slurm, the last two reserved (slurm.h)
    "slurm.signal_lead_s": Range(1, 65_535),  # sbatch(1), --signal: "between 0 and 65535"
    "snapshot.max_mb": Range(1, _COUNT),
    "checkpoint.every_n_steps": Range(1, _COUNT, _NEVER),
    "checkpoint.every_n_minutes": Range(1e-3, _YEAR_H * 60, "write above 0, or null for never"),
    "checkpoint.keep_last": Range(1, _COUNT, "write 1 or more: a run resumes from the last"),
    "checkpoint.keep_every_n_steps": Range(1, _COUNT, _NEVER),
    "requeue.max_attempts": Range(1, _COUNT, "write 1 or more, or null for no limit"),
    "requeue.budget": Range(0, _COUNT),
    "requeue.max_excluded_nodes": Range(0, 100_000),
    "requeue.exclude_for_h": Range(0, _YEAR_H),
    "watchdog.start_timeout_s": Range(1e-3, _YEAR_S, _POSITIVE),
    "watchdog.step_timeout_s": Range(1e-3, _YEAR_S, f"{_POSITIVE}, or null to learn it"),
    "watchdog.floor_s": Range(0, _YEAR_S),
    "watchdog.save_timeout_s": Range(1e-3, _YEAR_S, _POSITIVE),
    "watchdog.validation_timeout_s": Range(1e-3, _YEAR_S, f"{_POSITIVE}, or null to learn it"),
    "watchdog.heartbeat_s": Range(0.01, 3600),
    "script.stop_grace_s": Range(1, _YEAR_S),
    "preflight.budget_s": Range(
        1, 24 * 3600, "it needs a second or more: write preflight: off to leave it out"
    ),
    "preflight.memory_of_bad_nodes_h": Range(0, _YEAR_H),
    "preflight.monitor_interval_s": Range(0, _YEAR_S),
    "notify.timeout_s": Range(1, 60),
}


def out_of_range(config: Config) -> Iterator[tuple[str, float, str]]:
    """Key, value and what to write, for each number that cannot be meant; `.nan` is in no range."""
    for key, allowed in RANGES.items():
        value = operator.attrgetter(key)(config)
        if config.script.path and key in OF_THE_SCRIPT:
            continue
        if value is None or allowed.least <= value <= allowed.most:
            continue
        if value > allowed.most:
            yield key, value, f"write {allowed.most:.12g} or less"
        else:
            below = _ranks_a_node(config) if key == "slurm.gpus_per_node" else allowed.below
            yield key, value, below or f"write {allowed.least:.12g} or more"


def _ranks_a_node(config: Config) -> str:
    """What to write in the place of no GPU, by what the config says of the accelerator."""
    key = "script.accelerator" if config.script.path else "trainer.accelerator"
    accelerator = (
        config.script.accelerator if config.script.path else config.trainer.get("accelerator")
    )
    if accelerator == "cpu":
        return f"write 1 or more: with {key}: cpu it is the number of ranks a node"
    gpus = "write how many GPUs of each node are used, 1 or more"
    if accelerator not in (None, "auto"):
        return f"{gpus}: {key} is {accelerator}"
    return f"{gpus}; without GPUs write {key}: cpu, and here the number of ranks a node"
