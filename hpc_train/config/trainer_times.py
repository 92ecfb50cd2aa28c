"""Times that Lightning's Trainer takes: as DD:HH:MM:SS, or as a timedelta's arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hpc_train.config.origins import Origins

TIME_FORM = 'write "DD:HH:MM:SS", in quotes in a file: "00:00:30:00" is 30 minutes'
_FORM = re.compile(r"\d+:\d\d:\d\d:\d\d")
_NOTHING = {  # what no time at all would do, and what to write
    "max_time": ("nothing would be trained", 'write more, such as "00:12:00:00"'),
    "val_check_interval": ("a validation after each batch", "write 1 for that, or a longer time"),
}
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def check_times(arguments: Mapping[str, Any], origins: Origins) -> None:
    """Refuse a time that Lightning cannot read, or of nothing, of the section `trainer`.

    `val_check_interval` takes one since Lightning 2.6; an older one refuses each text as a type.

    Raises:
        ConfigError: with the time as it is written.
    """
    interval = arguments.get("val_check_interval")
    if isinstance(interval, str) and (number := _number_in(interval)):
        key, said = "trainer.val_check_interval", f"is the text {interval!r}"
        raise origins.error(key, said, f"write {number}, without quotes")
    for name, (nothing, fix) in _NOTHING.items():
        value = arguments.get(name)
        if not isinstance(value, (str, Mapping, list)):
            continue
        if _length_of(f"trainer.{name}", value, origins) <= timedelta(0):
            raise origins.error(f"trainer.{name}", f"is {value}: {nothing}", fix)


def _length_of(key: str, value: str | Mapping[str, Any] | list[Any], origins: Origins) -> timedelta:
    if isinstance(value, str) and _FORM.fullmatch(value.strip()):
        names = ("days", "hours", "minutes", "seconds")
        return timedelta(**dict(zip(names, map(int, value.split(":")), strict=True)))
    if isinstance(value, str):
        raise origins.error(key, f"is {value!r}", time_of(value))
    try:
        return timedelta(**value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        raise origins.error(key, f"is {value!r}, which is no time", TIME_FORM) from None


def _number_in(text: str) -> str:
    return text.strip() if re.fullmatch(r"\s*\d*\.?\d+\s*", text) else ""


def short_time(key: str, text: str) -> str:
    """What to write for a time of Slurm's form (`1:30:00`) under a key of these; or nothing."""
    is_short = key.removeprefix("trainer.") in _NOTHING and text.count(":") < 3
    return time_of(text) if is_short else ""


def time_of(text: str) -> str:
    """What to write for a time of Slurm's form, or with its unit, as `trainer.max_time`."""
    whole = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)", text)
    unit = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([dhms])[a-z]*", text.strip().lower())
    if unit:
        minutes, seconds = divmod(round(float(unit[1]) * _SECONDS[unit[2]]), 60)
    elif whole:
        days, hours, minutes, seconds = (int(part or 0) for part in whole.groups())
        minutes += 60 * (24 * days + hours)
    else:
        return TIME_FORM
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f'write "{days:02}:{hours:02}:{minutes:02}:{seconds:02}": days, hours, minutes, seconds'
