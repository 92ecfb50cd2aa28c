"""A seed by the word of another tool, such as `seed_everything: 42`: the line to write for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpc_train.config.origins import Origins
from hpc_train.config.schema import Config

KEY = "seed"
_DEFAULT = Config().seed


def seed_to_write(written: str, values: Mapping[str, Any], origins: Origins) -> str:
    """What to write for it, with the number; also where there is a seed already.

    Args:
        written: The key of the other tool, as it stands in a file or was typed.
        values: The whole config.
        origins: For the places of both.
    """
    value, there = values.get(written), values.get(KEY)
    sign = "=" if origins.is_typed(written) else ": "
    line = f"{KEY}{sign}{value}"
    if value is False:  # to LightningCLI: none is set
        return f"leave it out: each run has a seed, {_DEFAULT if there is None else there}"
    if there is None:
        if value is True:  # to LightningCLI: one that it chooses
            return f"write {KEY}{sign}{_DEFAULT}, or another number"
        return f"write {line}" if type(value) is int else f"write {KEY}"
    is_there = f"{KEY}{'=' if origins.is_typed(KEY) else ': '}{there}"
    if type(value) is not int or value == there:
        return f"leave it out: {is_there} is there"
    place = origins.of(KEY)
    if place.partition(":")[0] == origins.of(written).partition(":")[0]:
        return f"leave it out: {is_there} is there ({place}), or write {line} in the place of both"
    return f"write {line}, which goes before {is_there} ({place})"
