"""Mappings, lists, values and nulls where the schema has them, before OmegaConf types the rest."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from hpc_train.config.keys import TEXT_KEYS, TYPES
from hpc_train.config.origins import Origins

_IN_BRACKETS = "write it in brackets: [...]"
_PAIRS = "write key: value pairs below it"
_NOTHING = {"list": "write [] for none", "dict": "write {} for none"}


def check_containers(values: Mapping[str, Any], origins: Origins) -> None:
    """Refuse a list where a mapping belongs, null, and the like: OmegaConf hides which key it was.

    Args:
        values: Of the whole config; a section is a mapping already.

    Raises:
        ConfigError: with the key, and what to write.
    """
    for key, kind in TYPES.items():
        value: Any = functools.reduce(_below, key.split("."), values)
        if value is ...:
            continue
        if value is None:
            if not kind.startswith("Optional"):
                raise origins.error(key, "is null", _NOTHING.get(kind[:4], "write a value"))
        elif key != "env.setup":  # which has a check of its own
            _check_value(key, kind, value, origins)


def _check_value(key: str, kind: str, value: Any, origins: Origins) -> None:
    elements: Any = ()
    is_mapping, is_list = isinstance(value, Mapping), isinstance(value, list)
    if kind.startswith("dict["):
        if not is_mapping:
            raise origins.error(key, "is no mapping", _as_mapping(key, value, origins))
        elements = value.items()
    elif kind.startswith("list["):
        if not is_list:
            raise origins.error(key, "is no list", _as_list(key, value, origins))
        elements = enumerate(value)
    elif is_mapping or is_list:
        text = f'write one text, in quotes: "{",".join(map(str, value))}"'
        is_text = key in TEXT_KEYS and is_list
        raise origins.error(key, f"is {value!r}", text if is_text else _one(key, value, origins))
    elif kind == "bool" and isinstance(value, (int, float)) and not isinstance(value, bool):
        raise origins.error(key, f"is {value}", "write true or false")
    may_be_empty = is_mapping or key == "script.args"
    for name, item in elements if "Any" not in kind else ():
        _check_element(f"{key}.{name}", item, origins, may_be_empty=may_be_empty)


def _one(key: str, value: Any, origins: Origins) -> str:
    """What to write for a list or a mapping in the place of one value."""
    from hpc_train.config.fit.left_out_layers import two_keys  # on the way to an error
    from hpc_train.config.sweeps.meant_sweep import several_values

    if key == "init_from" and (keys := two_keys(value, typed=origins.is_typed(key))):
        return keys
    return f"write one value{several_values(key, value, is_typed=origins.is_typed(key))}"


def _as_mapping(key: str, value: Any, origins: Origins) -> str:
    """What to write for what is no mapping."""
    from hpc_train.config.meant_words.extra_flags import as_keys
    from hpc_train.config.yaml_slips.dashes import (  # on the way to an error
        as_pairs,
        without_dashes,
    )

    is_typed = origins.is_typed(key)
    if key == "slurm.extra":
        hint = as_keys(value, is_typed=is_typed) or without_dashes(value)
    else:
        hint = without_dashes(value) or as_pairs(key, value, is_typed=is_typed)
    return hint or (f"write {key}.NAME=VALUE" if is_typed else _PAIRS)


def _as_list(key: str, value: Any, origins: Origins) -> str:
    """What to write for what is no list."""
    from hpc_train.config.meant_words.module_lines import hint_of_lines
    from hpc_train.config.yaml_slips.dashes import as_list  # on the way to an error

    if key == "env.modules" and isinstance(value, str):
        hint = hint_of_lines(value.splitlines(), is_typed=origins.is_typed(key))
        if hint:
            return hint
    words = re.split(r"[\s,]+", value.strip()) if isinstance(value, str) else []
    is_plain = all(re.fullmatch(r"[\w./@:$~+=-]+", word) for word in words)
    is_plain = is_plain and words not in ([], ["all"])
    if value is False or str(value).lower() in ("none", "null", "off", "no"):
        return "write [] for none"
    if isinstance(value, str) and value.startswith("-"):
        return f"write a space behind each dash: - {value.lstrip('-').partition(' ')[0]}"
    return f"write [{', '.join(words)}]" if is_plain else as_list(key, value) or _IN_BRACKETS


def _check_element(key: str, item: Any, origins: Origins, *, may_be_empty: bool) -> None:
    if isinstance(item, (Mapping, list)):
        raise origins.error(key, f"is {item!r}", "write one value")
    if item is None or (item == "" and not may_be_empty):
        said = "is null" if item is None else "is empty"
        raise origins.error(key, said, "write a value, or leave it out")


def _below(values: Any, word: str) -> Any:
    return values.get(word, ...) if isinstance(values, Mapping) else ...
