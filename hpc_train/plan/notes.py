"""What a person should know of a config that is not wrong."""

from __future__ import annotations

import re

from hpc_train.config.schema import Config, SlurmConfig
from hpc_train.plan.quoting import slug
from hpc_train.plan.units import stop_lead_s, time_s


def notes_on(config: Config) -> list[str]:
    """A line each: a folder that is not named as the run, a time that reads like another one."""
    notes = []
    folder = slug(config.name)
    if folder != config.name:
        name = config.name if len(config.name) <= 80 else f"{config.name[:77]}..."
        notes.append(
            f"the name {name!r} is no name of a folder as it is: the run's folder, and its name in"
            f" hpc-train list and status, is {folder!r}"
        )
    if config.slurm.gpu_type and config.trainer.get("accelerator") == "cpu":
        notes.append("slurm.gpu_type is not used: on CPUs no GPU is asked for")
    given = (config.data.get("init_args") or {}).get("batch_size")
    if given not in (None, config.global_batch_size, config.micro_batch_size):
        size = (
            f"global_batch_size, {config.global_batch_size}, decides what a rank's DataLoader has"
        )
        notes.append(f"data.init_args.batch_size is {given}, and {size}")
    return [*notes, *time_notes(config.slurm.time), *_lead_notes(config.slurm)]


def time_notes(time: str | None) -> list[str]:
    """A line about a time of two fields, which Slurm reads as minutes and seconds."""
    if not re.fullmatch(r"\d+:\d+", time or ""):  # sbatch(1), --time: "minutes:seconds"
        return []
    minutes, seconds = map(int, str(time).split(":"))
    rest = f" {seconds} s" if seconds else ""
    hours = f"{minutes}:{seconds:02d}:00"
    note = f'slurm.time "{time}" is {minutes} min{rest} to Slurm (M:S); hours are written "{hours}"'
    return [note]


def _lead_notes(slurm: SlurmConfig) -> list[str]:
    try:
        limit_s = time_s(slurm.time or "UNLIMITED")
    except ValueError:
        return []  # the plan refuses it
    lead_s = stop_lead_s(slurm.signal_lead_s, limit_s)
    if slurm.signal_lead_s in (lead_s, SlurmConfig.signal_lead_s):  # the default is nobody's wish
        return []
    note = (
        f"slurm.signal_lead_s is {slurm.signal_lead_s}, and slurm.time {limit_s} s:"
        f" the job stops and saves {lead_s} s before its limit"
    )
    return [note]
