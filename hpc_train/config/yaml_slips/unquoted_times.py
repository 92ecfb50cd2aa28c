"""A time of Slurm's without quotes, which YAML reads as a number."""

from __future__ import annotations

import re
from typing import Any

from hpc_train.config.origins import Origins
from hpc_train.config.read import Sexagesimal

_TWO_FIELDS = re.compile(r"(\d+):(\d+)")


def check_time(time: Any, origins: Origins) -> None:
    """Refuse a `slurm.time` that is a number.

    Raises:
        ConfigError: with the text to write for each time that may be meant.
    """
    if isinstance(time, Sexagesimal):
        raise origins.error(
            "slurm.time",
            f"is {time.text} without quotes, which YAML reads as the number {int(time)},"
            f" and Slurm would take as {int(time)} minutes",
            _both_times(time.text) or f'write slurm.time: "{time.text}"',
        )
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        raise origins.error(
            "slurm.time",
            f"is the bare number {time}, and may mean minutes, seconds or an unquoted H:M:S",
            f'write it in quotes: "{time}" is minutes to Slurm, "1:30:00" an hour and a half',
        )


def _both_times(text: str) -> str:
    """What to write where `10:00` is ten hours, and where it is ten minutes; else empty."""
    found = _TWO_FIELDS.fullmatch(text)
    if found is None:
        return ""
    first, second = map(int, found.groups())
    as_hours = f'"{first}:{second:02d}:00" is {_in_words((first, "h"), (second, "min"))}'
    minutes = f"{first // 60}:{first % 60:02d}:{second:02d}"
    as_minutes = f'"{minutes}" {_in_words((first, "min"), (second, "s"))}'
    return f"write hours and seconds, too: {as_hours}, {as_minutes}"


def _in_words(*parts: tuple[int, str]) -> str:
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
