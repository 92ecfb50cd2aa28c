"""Lines that begin in a wrong column, found by moving them to those in which a key may begin.

PyYAML stops at such a line and says what it expected; where the line belongs is told by the lines
above it, and by what may stand below their keys.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET
from hpc_train.config.trainer_args import trainer_parameters
from hpc_train.config.yaml_slips.missing_colons import place_of_error

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEY = re.compile(r"( *)((?:- +)*)([\w.-]+):(?=\s|$)")
_DASH = re.compile(r"( *)-\s")
_IS_EMPTY = re.compile(r":\s*(?:#.*)?$")
_AT_THE_TOP = {*FIELDS, "base", "defaults", "cluster_profile"}


@dataclass(frozen=True)
class _Column:
    """Where a key begins, with its number from 1 on and the keys above it."""

    column: int
    line: int
    key: str
    above: tuple[str, ...]


def column_slip(rows: Sequence[str], number: int) -> str:
    """What to write for the line at which PyYAML stopped; empty where no column is surely meant.

    Args:
        rows: Of the whole file.
        number: Of the line, from 1 on.
    """
    if not 1 < number <= len(rows):
        return ""
    row = rows[number - 1]
    found, dash = _KEY.match(row), _DASH.match(row)
    if not (found or dash):
        return ""
    column, key = len(row) - len(row.lstrip()), "" if dash or not found else found[3]
    if key:
        places = [it for it in _open_keys(rows, number) if _may_stand(key, it.above)]
    else:
        places = _dashes(rows, number)
    moved = [it for it in places if it.column != column]
    moved = [it for it in moved if _mends(rows, number, it.column - column)]
    if not moved:
        return ""
    opens = row.rstrip().endswith(":")  # so it is a section's, or an object's

    def rank(place: _Column) -> tuple[bool, int, bool, int]:
        known = _is_known(key, place.above)
        return not (known and opens), abs(place.column - column), not known, -place.line

    meant = min(moved, key=rank)
    where = "in the line above" if meant.line == number - 1 else f"in line {meant.line}"
    if meant.above[1:] == ("-",) and meant.above[0] in (*SECTIONS, "trainer", "model", "data"):
        pairs = f"{meant.above[0]} has pairs, {meant.key} and {key} one below the other"
        return f"leave out the dash of {meant.key} {where}: {pairs}"
    words = (key, meant.key) if key else ("the dash", "the dash")
    return f"begin {words[0]} in the column of {words[1]} {where}: {meant.column + 1}"


def under_empty_key(rows: Sequence[str], number: int) -> str:
    """What to indent where keys stand in the column of the empty key that they belong to.

    `trainer:`, `max_epochs: 3` below it in the same column, and the others deeper: PyYAML stops at
    the first that is deeper, which is right.

    Args:
        rows: Of the whole file.
        number: Of the line at which PyYAML stopped, from 1 on.
    """
    deeper = _KEY.match(rows[number - 1]) if 1 < number <= len(rows) else None
    held = _open_keys(rows, number) if deeper and not deeper[2] else []
    if not deeper or not held:
        return ""
    base, column, moved = held[-1].column, len(deeper[1]), [*rows]
    beside = held[-1].above
    names: list[str] = []
    for line in range(number - 1, 0, -1):
        row = rows[line - 1]
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        found = _KEY.match(row)
        if found is None or len(found[1]) + len(found[2]) != base or base >= column:
            return ""
        if _IS_EMPTY.search(row):
            own = (*(it for it in beside if it != "-"), found[3])
            is_meant = names and all(_is_meant_below(it, own, beside) for it in names)
            if not is_meant or _stops_at(moved) <= number:
                return ""
            named = " and ".join(reversed(names))
            where = f"indent {named} to the column of {deeper[3]} ({column + 1})"
            belong = "it belongs" if len(names) == 1 else "they belong"
            return f"{where}: {belong} below {found[3]}: in line {line}"
        if found[2]:
            return ""
        names.append(found[3])
        moved[line - 1] = " " * column + row.lstrip()
    return ""


def below_empty_section(place: str) -> tuple[str, list[str]]:
    """What to indent where keys at the margin belong to an empty section above, and those keys.

    Args:
        place: Of one of them, as `cfg.yaml:12`.
    """
    file, _, line = place.rpartition(":")
    try:
        rows = Path(file).read_text("utf-8").splitlines() if line.isdecimal() else []
    except (OSError, UnicodeDecodeError):
        return "", []
    names: dict[int, str] = {}
    section = 0
    for number, row in enumerate(rows, start=1):
        found = _KEY.match(row)
        if not found or found[1] or found[2]:  # deeper, or no key
            continue
        above = rows[section - 1].partition(":")[0] if section else ""
        if above and _is_known(found[3], (above,)) and found[3] not in _AT_THE_TOP:
            names[number] = found[3]
        elif int(line) in names:
            break
        else:
            names, section = {}, number if _IS_EMPTY.search(row) else 0
    if int(line or 0) not in names or _is_deeper(rows, section):
        return "", []
    belong = "it belongs" if len(names) == 1 else "they belong"
    above = rows[section - 1].partition(":")[0]
    named = " and ".join(names.values())
    named += ", with the lines below it" if any(_is_deeper(rows, it) for it in names) else ""
    return f"indent {named}: {belong} below {above}: in line {section}", [*names.values()]


def _is_deeper(rows: Sequence[str], number: int) -> bool:
    """Whether something stands below a key, so that it is not empty."""
    others = (it for it in rows[number:] if it.strip() and not it.lstrip().startswith("#"))
    return next(others, "")[:1] in (" ", "-")


def _is_meant_below(name: str, parent: tuple[str, ...], beside: tuple[str, ...]) -> bool:
    """Whether a key may be below its parent, and may not be beside it."""
    return _may_stand(name, parent) and not _may_stand(name, beside)


def _open_keys(rows: Sequence[str], number: int) -> list[_Column]:
    """The keys beside which one of this line may stand: those above it that are not closed yet."""
    open_ones: list[_Column] = []
    for line, row in enumerate(rows[: number - 1], start=1):
        if (found := _KEY.match(row)) is None:
            continue
        column = len(found[1]) + len(found[2])
        start = len(found[1]) if found[2] else column
        open_ones = [it for it in open_ones if it.column < start]
        above = (*(it.key for it in open_ones), *(["-"] if found[2] else []))
        if not found[2]:
            above = _with_dash(above, column, rows[: line - 1])
        open_ones.append(_Column(column, line, found[3], above))
    return open_ones


def _with_dash(above: tuple[str, ...], column: int, rows: Sequence[str]) -> tuple[str, ...]:
    """The keys above one, with the dash of the list whose element it is in."""
    for row in reversed(rows):
        found = _KEY.match(row)
        if found is None or len(found[1]) > column:
            continue
        is_item = bool(found[2]) and len(found[1]) + len(found[2]) == column
        if is_item or len(found[1]) < column:
            return (*above, "-") if is_item else above
    return above


def _dashes(rows: Sequence[str], number: int) -> list[_Column]:
    """The dashes of the lists that the line above is in."""
    open_ones: list[_Column] = []
    for line, row in enumerate(rows[: number - 1], start=1):
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        column = len(row) - len(row.lstrip())
        open_ones = [it for it in open_ones if it.column < column]
        if _DASH.match(row):
            open_ones.append(_Column(column, line, "-", ()))
    return open_ones


def _may_stand(key: str, above: tuple[str, ...]) -> bool:
    """Whether a key may be below these: a section and an object have few of their own."""
    known = _known_below(above)
    return known is None or key in known or (not above and key.startswith("x-"))


def _is_known(key: str, above: tuple[str, ...]) -> bool:
    """Whether it is one of few keys that may be there, so that it belongs there."""
    return key in (_known_below(above) or ())


def _known_below(above: tuple[str, ...]) -> set[str] | None:
    """The keys that there may be; None where any may be, or where that is not known."""
    if not above:
        return _AT_THE_TOP
    in_list = above[0] == "loggers" or (above[0] == "trainer" and len(above) > 2)
    is_item = above[-1] == "-" and in_list
    if is_item or above in (("model",), ("data",)):
        return {CLASS_PATH, INIT_ARGS, TARGET}
    if len(above) > 1:
        return None
    if above[0] == "trainer":
        return set(trainer_parameters(sys.path)) or None
    return {*SECTIONS[above[0]]} if above[0] in SECTIONS else None


def _mends(rows: Sequence[str], number: int, shift: int) -> bool:
    """Whether PyYAML comes past the line, and those below it that belong to it, when moved."""
    moved = [*rows]
    column = len(rows[number - 1]) - len(rows[number - 1].lstrip())
    for at in range(number - 1, len(rows)):
        row = rows[at]
        spaces = len(row) - len(row.lstrip())
        if at > number - 1 and row.strip() and spaces <= column:
            break
        if row.strip():
            moved[at] = " " * max(0, spaces + shift) + row.lstrip()
    return _stops_at(moved) > number


def _stops_at(rows: Sequence[str]) -> int:
    """The number of the line at which PyYAML stops; beyond the last where it reads them all."""
    try:
        yaml.compose("\n".join([*rows, ""]), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = place_of_error(error)
        return mark.line + 1 if mark else 0
    except (yaml.YAMLError, ValueError, RecursionError):
        return 0
    return len(rows) + 1
