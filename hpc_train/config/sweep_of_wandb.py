"""A sweep as the YAML of Weights & Biases writes it, and what to write here.

"parameters: {learning_rate: {values: [0.01, 0.1]}}" beside "method: grid" (W&B's manual, Define a
sweep configuration). Here each key has its values, and all combinations are trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpc_train.config.origins import Origins

_OF_A_PARAMETER = frozenset(("value", "min", "max", "distribution", "mu", "sigma", "q"))


def check_wandb(section: Mapping[str, Any], origins: Origins) -> None:
    """Refuse the form of W&B.

    Args:
        section: All of `sweep`.
        origins: For the file and line of an error.

    Raises:
        ConfigError: with what to write.
    """
    parameters = section.get("parameters")
    if isinstance(parameters, Mapping) and parameters:
        lists = [f"{key}: {_values(it)}" for key, it in parameters.items()]
        said = "is as Weights & Biases has it; here each key has its values"
        bare = next((key for key in parameters if "." not in str(key)), "")
        whole = f", each by its whole key, as model.init_args.{bare}" if bare else ""
        hint = f"write sweep: {{{', '.join(lists)}}}{whole}{_no_search(parameters)}"
        raise origins.error("sweep.parameters", said, hint)


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
