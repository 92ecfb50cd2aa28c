"""What a person should know of a config that is not wrong."""

from __future__ import annotations

import re

from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.config.schema import Config, SlurmConfig
from hpc_train.plan.cut_epochs import cut_notes
from hpc_train.plan.quoting import slug
from hpc_train.plan.units import SIGNAL_IS_EARLY_S, slurm_time, stop_lead_s, time_s

_DAYS_H = (36, 48, 72, 96)  # hours that people give jobs; more than 24 may as well be minutes
_SHORT_S = 60  # less of a job is no time to train: it has to start first
_GOOD_S = 600  # what is said in its place


def notes_on(config: Config, origins: Origins = NOWHERE) -> list[str]:
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
    slurm = config.slurm
    notes += [*_end_notes(config), *cut_notes(config, origins)]
    times = time_notes(slurm.time, slurm.signal_lead_s, goes_on=config.requeue.enabled)
    return [*notes, *times, *_lead_notes(slurm)]


def time_notes(
    time: str | None, lead_s: int = SlurmConfig.signal_lead_s, *, goes_on: bool = True
) -> list[str]:
    """A line about a time that Slurm reads otherwise than people may, or that is hardly any.

    Args:
        lead_s: `slurm.signal_lead_s`.
        goes_on: Whether another job follows one that its limit has ended.
    """
    written = (time or "").strip()
    as_read: list[str] = []
    if re.fullmatch(r"\d+:\d+", written):  # sbatch(1), --time: "minutes:seconds"
        minutes, seconds = map(int, written.split(":"))
        rest = f" {seconds} s" if seconds else ""
        hours = f"{minutes}:{seconds:02d}:00"
        is_read = f"{minutes} min{rest} to Slurm (M:S)"
        as_read = [f'slurm.time "{written}" is {is_read}; hours are written "{hours}"']
    if re.fullmatch(r"[1-9]\d*", written) and (int(written) <= 24 or int(written) in _DAYS_H):
        as_read = [f'slurm.time "{written}" is {written} min to Slurm; hours: "{written}:00:00"']
    return [*as_read, *_short_notes(written, lead_s, goes_on=goes_on)]


def long_enough_s(limit_s: int, lead_s: int = SlurmConfig.signal_lead_s) -> int:
    """That limit, or the nearest one of more and more that leaves a job time to train."""
    if _is_short(limit_s, lead_s):
        return long_enough_s(max(2 * limit_s, _GOOD_S), lead_s)
    return limit_s


def _is_short(limit_s: int, lead_s: int) -> bool:
    return _left_s(limit_s, lead_s) < _SHORT_S


def _left_s(limit_s: int, lead_s: int) -> int:
    return max(0, limit_s - stop_lead_s(lead_s, limit_s) - SIGNAL_IS_EARLY_S)


def _short_notes(time: str, lead_s: int, *, goes_on: bool) -> list[str]:
    limit_s = _limit_s(time)
    if not limit_s or not _is_short(limit_s, lead_s):
        return []
    used_s, left_s = stop_lead_s(lead_s, limit_s), _left_s(limit_s, lead_s)
    longer = slurm_time(long_enough_s(limit_s, lead_s))
    is_used = "" if used_s == lead_s else f" is {lead_s}, and half of the time is the most"
    after = "then another goes on" if goes_on else "no other follows: hpc-train resume goes on"
    note = (
        f"slurm.time {slurm_time(limit_s)} leaves a job {left_s} s or little more: it stops and"
        f" saves {used_s} s before its limit (slurm.signal_lead_s{is_used}), to which Slurm may"
        f" add {SIGNAL_IS_EARLY_S} s; {after}."
        f' Write a longer one ("{longer}") or a smaller lead'
    )
    return [note]


def _limit_s(time: str | None) -> int | None:
    try:
        return time_s(time or "UNLIMITED")
    except ValueError:
        return None  # the plan refuses it


def _end_notes(config: Config) -> list[str]:
    """A line where nothing ends the training but Lightning's own default."""
    trainer = config.trainer
    has_end = trainer.get("max_epochs") is not None or trainer.get("max_steps", -1) not in (
        None,
        -1,
    )
    if config.script.path or has_end or trainer.get("max_time") or trainer.get("fast_dev_run"):
        return []
    is_long = "no trainer.max_epochs, max_steps or max_time: Lightning trains for 1000 epochs"
    return [f"{is_long}; write trainer.max_epochs=N, or -1 for no end"]


def _lead_notes(slurm: SlurmConfig) -> list[str]:
    limit_s = _limit_s(slurm.time)
    lead_s = stop_lead_s(slurm.signal_lead_s, limit_s)
    if slurm.signal_lead_s in (lead_s, SlurmConfig.signal_lead_s):  # the default is nobody's wish
        return []
    if _short_notes(slurm.time or "", slurm.signal_lead_s, goes_on=True):
        return []  # that says it
    note = (
        f"slurm.signal_lead_s is {slurm.signal_lead_s}, and slurm.time {limit_s} s:"
        f" the job stops and saves {lead_s} s before its limit"
    )
    return [note]
