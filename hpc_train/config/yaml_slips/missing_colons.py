"""Lines in which the colon behind a key was forgotten, found by trying one there.

PyYAML reads `name exp` and the line below it as one text, and stops at the colon of that line.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from hpc_train.config.keys import SECTIONS, TYPES
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LINE = re.compile(r"((?:\s*- )?\s*)([A-Za-z_][\w.-]*)(?:\s+([^\s=:#].*?))?\s*(?:\s#.*)?")
_ONE_VALUE = re.compile(r"""[^\s"'\[{]+|"[^"]*"|'[^']*'|\[.*\]|\{.*\}""")
_SEXAGESIMAL = re.compile(r"\d+(?::\d+)+")  # a number to YAML 1.1
# Behind one of these several words can be meant as its value.
_KNOWN = {*SECTIONS, *(it.rpartition(".")[2] for it in TYPES), CLASS_PATH, INIT_ARGS}


def lines_without_colon(text: str) -> dict[int, tuple[str, str]]:
    """What is written without its colon, by line from 1 on -> as it is, and as it is meant.

    Empty where a colon does not mend what stops PyYAML there: then something else is wrong.

    Args:
        text: Of a whole file, which PyYAML does not take.
    """
    rows, found = text.splitlines(), dict[int, tuple[str, str]]()
    while (stopped := _stop(rows)) is not None:
        mended = next((it for it in _mendings(rows, stopped) if _goes_on(it, rows, stopped)), {})
        for number, meant in mended.items():
            value = " VALUE" if _is_left_alone(rows, number) else ""
            found[number + 1] = (_plain(rows[number]), _plain(meant) + value)
            rows[number] = meant
        if not mended:
            break
    return dict(sorted(found.items()))


def place_of_error(error: yaml.MarkedYAMLError) -> yaml.Mark | None:
    """Where PyYAML stopped; of a key without its colon the key, and not where the search ended."""
    if error.problem == "could not find expected ':'" and error.context_mark:
        return error.context_mark
    return error.problem_mark or error.context_mark


def is_pair_of_a_known_key(line: str) -> bool:
    """Whether a text is `name exp`, or another key of ours and a value."""
    found = _LINE.fullmatch(line)
    return found is not None and found[2] in _KNOWN and bool(found[3])


def pairs_meant(text: object) -> str:
    """`lr: 0.1; width: 3` of `lr 0.1 width 3`, to which YAML folds two lines; empty for others."""
    words = text.split() if isinstance(text, str) else []
    if not words or len(words) % 2 or not all(it.isidentifier() for it in words[::2]):
        return ""
    pairs = [with_colon(f"{key} {value}") for key, value in zip(*[iter(words)] * 2, strict=True)]
    return "; ".join(pairs) if all(pairs) else ""


def with_colon(line: str) -> str:
    """`lr: 0.1` of `lr 0.1`; empty for what is no key and its value."""
    found = _LINE.fullmatch(line)
    if found is None or keyword.iskeyword(found[2]):
        return ""
    if found[3] and not (_ONE_VALUE.fullmatch(found[3]) or found[2] in _KNOWN):
        return ""
    value = found[3] or ""
    quoted = f'"{value}"' if _SEXAGESIMAL.fullmatch(value) else value
    return f"{line[: found.end(2)]}:{line[found.end(2) :].replace(value, quoted, 1)}"


def _mendings(rows: Sequence[str], stopped: int) -> Iterator[Mapping[int, str]]:
    """Colons to try: in the line where PyYAML stopped, then in more and more of those above."""
    if here := _meant(rows, stopped):
        yield {stopped: here}
    mended: dict[int, str] = {}
    for number in range(min(stopped, len(rows)) - 1, -1, -1):
        if not rows[number].strip() or rows[number].lstrip().startswith("#"):
            continue
        if not (meant := _meant(rows, number)):
            return
        mended[number] = meant
        yield dict(mended)


def _meant(rows: Sequence[str], number: int) -> str:
    if number >= len(rows):
        return ""
    above = rows[number - 1].rstrip() if number else ""
    is_value = above.endswith(":") and " " not in rows[number].strip()
    return "" if is_value else with_colon(rows[number])


def _goes_on(mended: Mapping[int, str], rows: Sequence[str], stopped: int) -> bool:
    """Whether PyYAML comes past the line with these in place of the rows."""
    now = _stop([mended.get(number, row) for number, row in enumerate(rows)])
    return now is None or now > max(stopped, *mended)


def _stop(rows: Sequence[str]) -> int | None:
    """The index of the row at which PyYAML stops; None where it reads them all."""
    try:
        yaml.compose("\n".join([*rows, ""]), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = place_of_error(error)
        return mark.line if mark else 0
    except (yaml.YAMLError, ValueError, RecursionError):
        return None  # of another kind, in which no colon is missing
    return None


def _is_left_alone(rows: Sequence[str], number: int) -> bool:
    """Whether a key has neither a value nor lines of its own below it."""
    below = next((it for it in rows[number + 1 :] if it.strip() and it.strip()[0] != "#"), "")
    row = rows[number].replace("- ", "  ", 1)
    return len(_plain(row).split()) == 1 and _spaces(below) <= _spaces(row)


def _spaces(row: str) -> int:
    return len(row) - len(row.lstrip())


def _plain(row: str) -> str:
    return re.sub(r"\s#.*", "", row).strip().removeprefix("- ")
