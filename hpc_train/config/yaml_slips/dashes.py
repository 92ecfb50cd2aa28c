"""Dashes where pairs belong, and pairs where dashes do: what to write, on the way to an error."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from hpc_train.config.specs import is_object
from hpc_train.config.whole_forms import flow, loggers_for

_MOST = 160  # of a line


def without_dashes(value: Any) -> str:
    """What to write for `- lr: 0.1` below a key that has pairs; empty for what is no such list."""
    items = value if isinstance(value, list) else []
    if not items or not all(isinstance(it, Mapping) and it for it in items):
        return ""
    pairs = [(str(name), below) for it in items for name, below in it.items()]
    text = "; ".join(f"{name}: {flow(below)}" for name, below in pairs)
    if len(dict(pairs)) < len(pairs) or len(text) > _MOST:
        text = f"{pairs[0][0]}: ..."
    return f"write the pairs without dashes: {text}"


def as_pairs(key: str, value: Any, *, is_typed: bool) -> str:
    """What to write for `NAME=VALUE`, or a list of such words, in a mapping's place; else empty.

    Args:
        key: Of the mapping, dotted.
        is_typed: Whether it stands on the command line, where each pair is a word of its own.
    """
    words = value if isinstance(value, list) else [value]
    found = [re.fullmatch(r"(-{0,2})([A-Za-z_][\w-]*)(?:=(.*))?", str(word)) for word in words]
    if not words or not all(it and (it[3] or it[1]) for it in found):
        return ""
    pairs = [(it[2], it[3] or "true") for it in found if it]
    if is_typed:
        return "write " + " ".join(shlex.quote(f"{key}.{name}={text}") for name, text in pairs)
    return f"write {key.rpartition('.')[2]}: {flow(dict(pairs))}"


def as_list(key: str, value: Any) -> str:
    """What to write for a mapping where a list belongs; empty where that is not known."""
    if key != "loggers" or not isinstance(value, Mapping):
        return ""
    meant = flow([{**value}] if is_object(value) else loggers_for(value))
    if "my_package." in meant or len(meant) > _MOST:
        return "a dash in front of each: - class_path: ..."
    return f"write {meant}; in lines of its own, each has a dash in front"


def torn_dashes(value: Any) -> str:
    """What to write for `csv - wandb`, to which YAML folds dashes of two columns; else empty."""
    words = re.split(r"\s+-\s+", value.strip()) if isinstance(value, str) else []
    return f"begin each dash in one column, or write [{', '.join(words)}]" if words[1:] else ""
