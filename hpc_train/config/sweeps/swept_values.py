"""The values of a key that stand behind `--sweep KEY=`."""

from __future__ import annotations

import ast
import re
import sys
from decimal import Decimal
from typing import Any

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.keys import TYPES
from hpc_train.config.read import parse_value
from hpc_train.config.sweeps.meant_sweep import check_one_key, check_throttle
from hpc_train.config.trainer_args import trainer_parameters
from hpc_train.errors import ConfigError

_NUMBER = r"(-?\d[\d.e-]*?)"
# 1..5, 0.1:0.5, 0.1:0.5:0.1
_RANGE = re.compile(rf"\s*{_NUMBER}\s*(\.\.\.?|[:;])\s*{_NUMBER}\s*(?:[:;]\s*{_NUMBER}\s*)?")
_FROM_TO = re.compile(r"\s*(\d+)\s*-\s*(\d+)\s*")  # 1-3, where the key is a number
_OF_TIME = ("slurm.time", "trainer.max_time")  # 0:30:00
_MOST = 10  # values that are written out


def swept_values(text: str, key: str) -> Any:
    """The values of a key: a list in brackets or without, or a range as it stands."""
    check_one_key(key, text)
    check_throttle(key, text)
    if text.strip().startswith("range("):
        return text
    if found := re.fullmatch(r"\s*(choice|interval|shuffle|sort|glob)\((.*)\)\s*", text):
        word, inner = found.groups()
        values = inner if word == "choice" else "A,B,C"
        fix = f"write the values as they are: --sweep {key}={values.replace(' ', '')}"
        raise ConfigError(f"{COMMAND_LINE}: {key}={text.strip()}: {word}() is Hydra's", fix)
    if (found := _RANGE.fullmatch(text)) and key not in _OF_TIME:
        fix = _written_out(key, *found.groups())
        raise ConfigError(f"{COMMAND_LINE}: {key}={text} is no list of values", fix)
    found = _FROM_TO.fullmatch(text)
    if found and int(found[1]) < int(found[2]) and _is_number(key):
        fix = _written_out(key, found[1], ":", found[2], None)
        raise ConfigError(f"{COMMAND_LINE}: {key}={text} is no list of values", fix)
    is_list = text.strip().startswith("[")
    try:
        return parse_value(text if is_list else f"[{text}]", key)
    except ConfigError:
        if not (is_list and text.strip().endswith("]")):
            raise
        return parse_value(f"[{text}]", key)  # [8],[8,8]: each value is a list


def _is_number(key: str) -> bool:
    """Whether a key of ours or of the Trainer takes numbers, and no text."""
    section, _, name = key.partition(".")
    annotation = trainer_parameters(sys.path).get(name) if section == "trainer" else None
    kind = TYPES.get(key, "") if annotation is None else ast.unparse(annotation)
    return re.search(r"\b(?:int|float)\b", kind) is not None and "str" not in kind


def _written_out(key: str, first: str, sign: str, last: str, step: str | None) -> str:
    """What to write for a range: as `range`, or its values, of one whose meaning is sure."""
    numbers = [it for it in (first, last, step) if it is not None]
    is_whole = sign != ";" and all(it.isdecimal() for it in numbers)
    if is_whole and (step is None or 0 < int(step) <= int(last) - int(first)):
        by = f",{step}" if step else ""
        return f"write {key}='range({first},{int(last) + 1}{by})'"
    if step is None:
        return f"write each value: {key}={first},...,{last}"
    values = _values(first, last, step) if sign == ":" else []
    return f"values are separated by commas: {key}={','.join(values) or 'A,B,C'}"


def _values(first: str, last: str, step: str) -> list[str]:
    """`0.1:0.5:0.1` as first, last and step; none where that gives no few values up to the last."""
    try:
        begin, end, by = Decimal(first), Decimal(last), Decimal(step)
        count = (end - begin) / by
    except ArithmeticError:
        return []
    if count != count.to_integral_value() or not 1 <= count < _MOST:
        return []
    return [str(begin + number * by) for number in range(int(count) + 1)]
