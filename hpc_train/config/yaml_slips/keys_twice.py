"""A key that stands twice in one mapping: which to keep, or how the two become one."""

from __future__ import annotations

from pathlib import Path

import yaml

from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET
from hpc_train.errors import ConfigError


def here_twice(
    node: yaml.MappingNode, second: yaml.ScalarNode, prefix: str, path: Path
) -> ConfigError:
    """The refusal of a key's second place.

    Args:
        node: The mapping.
        second: The key, in its second place.
        prefix: The mapping's dotted key, with a dot behind it.
        path: Of the file.
    """
    name = second.value
    places = {key: value for key, value in node.value if key.value == name}
    first = next(iter(places))
    line, number = (it.start_mark.line + 1 for it in (second, first))
    hint = _joined(places[first], places[second], number, line) or "keep one of them"
    if not prefix and name in (CLASS_PATH, INIT_ARGS, TARGET):
        hint = "indent each below the key of its object: model or data"
    message = f"{prefix}{name} is here for the second time (first on line {number})"
    return ConfigError(f"{path}:{line}: {message}", hint)


def _joined(first: yaml.Node, second: yaml.Node, above: int, below: int) -> str:
    """What to write for two mappings, whose keys may all be meant; empty for other values."""
    mappings = isinstance(first, yaml.MappingNode) and isinstance(second, yaml.MappingNode)
    if not mappings or not first.value or not second.value:
        return ""
    here, there = ([str(key.value) for key, _ in it.value] for it in (first, second))
    moved = ", ".join(it for it in there if it not in here)
    both = ", ".join(it for it in there if it in here)
    join = f"join them: put {moved} of line {below} below line {above}, and remove line {below}"
    keep = f"keep one {both}" if "," not in both else f"keep one of each: {both}"
    if not moved:
        return f"keep one of them: both have {both}"
    return f"{join}; both have {both}: {keep}" if both else join
