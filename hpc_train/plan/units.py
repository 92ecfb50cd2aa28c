"""Slurm's ways to write time and memory, to and from seconds and MiB."""

from __future__ import annotations

import re

from hpc_train.config.words import with_unit

# sbatch(1), --time: "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours",
# "days-hours:minutes" and "days-hours:minutes:seconds".
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<rest>\d+(?::\d+){0,2})\Z", re.ASCII)
_WORDS = re.compile(r"(\d{1,6})\s*([dhms])[a-z]*", re.ASCII | re.IGNORECASE)
_UNLIMITED = frozenset({"UNLIMITED", "INFINITE"})
_MEMORY = re.compile(r"(?P<number>\d+)(?P<unit>[KMGT])B?\Z", re.ASCII | re.IGNORECASE)
_MIB_PER_UNIT = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}


def time_s(text: str) -> int | None:
    """Seconds of a Slurm time such as `30` (minutes), `2:30:00` or `1-12`; None for UNLIMITED.

    Raises:
        ValueError: with the accepted forms, when the text is none of them.
    """
    word = text.strip()
    if word.upper() in _UNLIMITED:
        return None
    match = _TIME.match(word)
    if match is None:
        raise ValueError(
            f"{text!r} is not a Slurm time: write minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S"
        )
    fields = [int(field) for field in match["rest"].split(":")]
    if match["days"] is not None:
        hours, minutes, seconds = [*fields, 0, 0][:3]
        return ((int(match["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds
    if len(fields) == 3:
        hours, minutes, seconds = fields
        return (hours * 60 + minutes) * 60 + seconds
    minutes, seconds = [*fields, 0][:2]
    return minutes * 60 + seconds


def meant_time(text: str) -> str:
    """`2:00:00` for `2h`, `2 hours` and the like; an example where nothing is known."""
    if days := re.fullmatch(r"(\d+):(\d+:\d+:\d+)", text.strip()):
        return f"{days[1]}-{days[2]}"
    word = _WORDS.fullmatch(text.strip())
    unit_s = {"d": 24 * 3600, "h": 3600, "m": 60, "s": 1}
    return slurm_time(int(word[1]) * unit_s[word[2].lower()]) if word else "1:30:00"


# Slurm sends the user signal up to a minute early, since it looks every 60 s (sbatch(1), --signal).
SIGNAL_IS_EARLY_S = 60


def stop_lead_s(wanted_s: int, limit_s: int | None) -> int:
    """How long before its limit a job stops and saves; at most half of it.

    A lead that is longer than the job would stop it at its start: Slurm then sends at once.
    """
    return max(1, min(wanted_s, limit_s // 2)) if limit_s else wanted_s


def slurm_time(seconds: int) -> str:
    """The one form without a second reading: `D-HH:MM:SS`, or `H:MM:SS` below a day."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02d}:{minute:02d}:{second:02d}"
    return f"{hour}:{minute:02d}:{second:02d}"


def memory_mib(text: str) -> int:
    """MiB of a Slurm memory size with its unit, rounded up: `64G`, `512M`, `1T`.

    `0` is Slurm's word for all the memory of a node and gives 0.

    Raises:
        ValueError: without a unit, since Slurm would take the number as megabytes.
    """
    word = text.strip()
    if word == "0":
        return 0
    match = _MEMORY.match(word)
    if match is None:
        raise ValueError(f"{text!r} is not a memory size with its unit, as in 64G or 512M")
    mib = int(match["number"]) * _MIB_PER_UNIT[match["unit"].upper()]
    return -int(-mib // 1)


def slurm_memory(mib: int) -> str:
    """The largest size that is at most so much, in whole `G`, or in `M` below two of them."""
    return f"{mib // 1024}G" if mib >= 2 * 1024 else f"{mib}M"


def meant_memory(text: str) -> str:
    """`1536M` for `1.5G`, `64G` for `64 GiB` or a bare 64; an example where nothing is known."""
    if re.fullmatch(r"[1-9]\d*", text.strip()):
        return with_unit(int(text))
    found = re.fullmatch(r"([\d.]+)\s*([KMGT])(?:i?B|ig\w*|eg\w*)?", text.strip(), re.IGNORECASE)
    if found is None or found[1].count(".") > 1 or found[1] == ".":
        return "64G"
    number, unit = float(found[1]), found[2].upper()
    if number.is_integer():
        return f"{number:.0f}{unit}"
    return f"{round(number * _MIB_PER_UNIT[unit])}M"
