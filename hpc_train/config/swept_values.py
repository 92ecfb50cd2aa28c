"""The values of a key that stand behind `--sweep KEY=`."""

from __future__ import annotations

import re
from typing import Any

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.read import parse_value
from hpc_train.errors import ConfigError


def swept_values(text: str, key: str) -> Any:
    """The values of a key: a list in brackets or without, or a range as it stands."""
    if text.strip().startswith("range("):
        return text
    if found := re.fullmatch(r"\s*(choice|interval|shuffle|sort|glob)\((.*)\)\s*", text):
        word, inner = found.groups()
        values = inner if word == "choice" else "A,B,C"
        fix = f"write the values as they are: --sweep {key}={values.replace(' ', '')}"
        raise ConfigError(f"{COMMAND_LINE}: {key}={text.strip()}: {word}() is Hydra's", fix)
    if found := re.fullmatch(r"\s*(-?\d[\d.e-]*?)\s*(?:\.\.\.?|[:;])\s*(-?\d[\d.e-]*)\s*", text):
        first, last = found.groups()
        is_whole = first.isdecimal() and last.isdecimal() and ";" not in text
        whole = f"range({first},{int(last) + 1})" if is_whole else ""
        hint = f"write {key}='{whole}'" if whole else f"write each value: {key}={first},...,{last}"
        raise ConfigError(f"{COMMAND_LINE}: {key}={text} is no list of values", hint)
    is_list = text.strip().startswith("[")
    try:
        return parse_value(text if is_list else f"[{text}]", key)
    except ConfigError:
        if not (is_list and text.strip().endswith("]")):
            raise
        return parse_value(f"[{text}]", key)  # [8],[8,8]: each value is a list
