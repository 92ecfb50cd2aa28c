"""A sweep as the YAML of Weights & Biases writes it, and what to write here.

"parameters: {learning_rate: {values: [0.01, 0.1]}}" beside "method: grid" (W&B's manual, Define a
sweep configuration). Here each key has its values, and all combinations are trained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpc_train.config.keys import FIELDS
from hpc_train.config.meant_words.own_arguments import argument_hint, below_class, is_taken
from hpc_train.config.meant_words.unknown_key import key_of_word
from hpc_train.config.origins import Origins

_OF_A_PARAMETER = frozenset(("value", "min", "max", "distribution", "mu", "sigma", "q"))


def check_wandb(section: Mapping[str, Any], origins: Origins, values: Mapping[str, Any]) -> None:
    """Refuse the form of W&B.

    Args:
        section: All of `sweep`.
        origins: For the file and line of an error.
        values: Of the whole config, whose classes may take its keys.

    Raises:
        ConfigError: with what to write.
    """
    parameters = section.get("parameters")
    if isinstance(parameters, Mapping) and parameters:
        whole = {key: _whole_key(str(key), values) for key in parameters}
        lists = [f"{whole[key]}: {_values(it)}" for key, it in parameters.items()]
        said = "is as Weights & Biases has it; here each key has its values"
        bare = next((it for it in whole.values() if "." not in it and it not in FIELDS), "")
        is_bare = bare and not _is_script(values)
        by = f", each by its whole key, as model.init_args.{bare}" if is_bare else ""
        hint = f"write sweep: {{{', '.join(lists)}}}{by}{_no_search(parameters)}"
        raise origins.error("sweep.parameters", said, hint)


def _whole_key(key: str, values: Mapping[str, Any]) -> str:
    """`model.init_args.lr` for `lr`, where that is what the config takes; else the key."""
    if "." in key or key in FIELDS or _is_script(values):  # which has {lr} in its arguments
        return key
    for section in ("model", "data"):
        if is_taken(section, key, values):
            return f"{below_class(section, values)}{key}"
    if meant := key_of_word(key):
        return meant
    hint = argument_hint("model", key, values)
    found = re.search(r"model\.[\w.]+\Z", hint)
    return found[0] if found else key


def _is_script(values: Mapping[str, Any]) -> bool:
    script = values.get("script")
    return isinstance(script, Mapping) and bool(script.get("path"))


def check_range(key: str, value: Mapping[str, Any], origins: Origins) -> None:
    """Refuse `{min: 0.001, max: 0.1}` for the values of a key.

    Raises:
        ConfigError: with what to write.
    """
    has_lists = any(isinstance(it, list | Mapping) for it in value.values())
    if has_lists or not _OF_A_PARAMETER.issuperset(value) or not {"value", "min"} & {*value}:
        return
    said = "is a range of Weights & Biases; here a key has its values"
    hint = f"write sweep: {{{key}: {_values(value)}}}{_no_search({key: value})}"
    raise origins.error(f"sweep.{key}", said, hint)


def _values(value: object) -> str:
    if not isinstance(value, Mapping):
        return f"[{value}]"
    if isinstance(value.get("values"), list):
        return f"[{', '.join(map(str, value['values']))}]"
    ends = [value[it] for it in ("value", "min", "max") if it in value]
    return f"[{', '.join(map(str, ends))}]" if ends else "[...]"


def _no_search(parameters: Mapping[str, Any]) -> str:
    is_range = any(isinstance(it, Mapping) and "min" in it for it in parameters.values())
    return ", with all values written out: no range is searched" if is_range else ""
