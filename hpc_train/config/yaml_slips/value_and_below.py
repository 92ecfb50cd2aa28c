"""A key that has a value behind its colon and pairs below it as well, of which YAML takes one.

`model: nets.Net` with `init_args: {lr: 0.1}` indented below it: the one line that says both.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET
from hpc_train.config.trainer_args import trainer_parameters

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PAIR = re.compile(r"( *)((?:- +)*)([\w.-]+): +(\S.*?)(?:\s+#.*)?\s*")
_CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_IN_BRACES = re.compile(r"[\[{\"'].*|[^,\[\]{}]+")  # what may be the value of a pair in braces
_OBJECTS = ("model", "data")
_OF_OBJECT = {CLASS_PATH, INIT_ARGS, TARGET}
_LONGEST = 120  # characters of a line to write


@dataclass(frozen=True)
class _Above:
    """The line with the value, `- ` in front of its key where it begins an item of a list."""

    number: int
    column: int
    dash: str
    key: str
    value: str


def value_and_below(rows: Sequence[str], number: int) -> str:
    """What to write for both; empty where it is another slip.

    Args:
        rows: Of the whole file.
        number: Of the line at which PyYAML stopped, from 1 on.
    """
    above = _above(rows, number) if 1 < number <= len(rows) else None
    if above is None or _column(rows[number - 1]) <= above.column:
        return ""
    is_class = above.key in _OBJECTS and _CLASS.fullmatch(above.value) is not None
    if not is_class and (above.value[0] != "{" or above.value[-1] != "}"):
        return ""
    below = [
        *itertools.takewhile(
            lambda it: not _says(it) or _column(it) > above.column, rows[number - 1 :]
        )
    ]
    while below and not _says(below[-1]):
        below.pop()
    name, pairs, last = _name(rows[number - 1]), _pairs(below), number - 1 + len(below)
    if name in _beside(above):  # it was indented too far
        return ""
    if line := _line(above, pairs) if pairs else "":
        between = "and" if last == above.number + 1 else "to"
        return f"write in place of lines {above.number} {between} {last}: {line}"
    return _apart(above, name)


def _above(rows: Sequence[str], number: int) -> _Above | None:
    """The last line above that says something, where that is a key with its value."""
    place = next((it for it in range(number - 1, 0, -1) if _says(rows[it - 1])), 0)
    found = _PAIR.fullmatch(rows[place - 1]) if place else None
    if found is None:
        return None
    return _Above(place, len(found[1]) + len(found[2]), *found.groups()[1:])


def _beside(above: _Above) -> set[str]:
    """Keys that may be meant to stand beside that one, and not below it."""
    if above.column == 0:
        return {*FIELDS}
    of_sections = (it for keys in SECTIONS.values() for it in keys)
    return {*of_sections, *trainer_parameters(sys.path)}


def _name(row: str) -> str:
    return row.strip().partition(":")[0]


def _says(row: str) -> bool:
    return row.strip()[:1] not in ("", "#")


def _column(row: str) -> int:
    return len(row) - len(row.lstrip())


def _pairs(below: Sequence[str]) -> list[str]:
    """`init_args: {lr: 0.1}`, each in one line; empty where there is one of several lines."""
    found = []
    for row in filter(_says, below):
        pair = _PAIR.fullmatch(row)
        if not pair or pair[2] or not _IN_BRACES.fullmatch(pair[4]):
            return []
        found.append(f"{pair[3]}: {pair[4]}")
    return found if len({_column(it) for it in filter(_says, below)}) == 1 else []


def _line(above: _Above, pairs: Sequence[str]) -> str:
    """The whole in one line; empty where it is long, or no YAML."""
    inner = above.value[1:-1].strip().rstrip(",")
    if above.value[0] != "{":
        of_object = all(_name(it) in _OF_OBJECT for it in pairs)
        pairs = pairs if of_object else [f"{INIT_ARGS}: {{{', '.join(pairs)}}}"]
        inner = "" if any(it.startswith(CLASS_PATH) for it in pairs) else _class_path(above)
    whole = f"{{{', '.join(filter(None, [inner, *pairs]))}}}"
    line = f"{above.dash}{above.key}: {whole}"
    try:
        is_yaml = bool(yaml.compose(line, Loader=_Loader))
    except yaml.YAMLError:
        return ""
    return line if is_yaml and len(line) <= _LONGEST else ""


def _class_path(above: _Above) -> str:
    return f"{CLASS_PATH}: {above.value}"


def _apart(above: _Above, name: str) -> str:
    """The same for several lines, where they stand."""
    what = above.value[1:-1].strip() if above.value[0] == "{" else _class_path(above)
    if above.value[0] == "{" and "," in what:
        what = "each pair in its braces"
    more = "" if name in _OF_OBJECT or above.value[0] == "{" else f", and {name} below {INIT_ARGS}:"
    line = f"on a line of its own below {above.key}:, in the column of {name}"
    return f"put {what} {line}{more}"
