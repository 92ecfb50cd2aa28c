"""Keys without a value in braces: what a decimal comma, or a colon without its space, has made."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

_PAIR = re.compile(r"([A-Za-z_][\w.-]*)[:=]\s*(?!//)(\S.*)")
_DIGITS = re.compile(r"-?\d+")


def all_flow_slips(node: yaml.Node | None, prefix: str) -> Iterator[tuple[yaml.Node, str, str]]:
    """The same of a value as a whole, however deep."""
    if isinstance(node, yaml.MappingNode):
        yield from flow_slips(node, prefix)
        for key_node, value_node in node.value:
            yield from all_flow_slips(value_node, f"{prefix}{key_node.value}.")
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from all_flow_slips(item, f"{prefix}{index}.")


def flow_slips(node: yaml.MappingNode, prefix: str) -> Iterator[tuple[yaml.Node, str, str]]:
    """`{lr: 0,05}` is {lr: 0, 05: null} to YAML, and `{lr:0.05}` is {"lr:0.05": null}.

    Args:
        node: A mapping, as it is parsed.
        prefix: Its dotted key, with a dot behind it.

    Yields:
        The key's node, what is wrong, and what to write.
    """
    above = ("", "")
    for key_node, value_node in node.value if node.flow_style else ():
        key = str(key_node.value)
        is_plain = isinstance(key_node, yaml.ScalarNode) and not key_node.style
        is_empty = isinstance(value_node, yaml.ScalarNode) and not value_node.value
        if is_plain and is_empty and not value_node.style:
            if key.isdecimal() and _DIGITS.fullmatch(above[1]):
                said = f"{prefix}{above[0]} is {above[1]},{key}, which is two things to YAML"
                yield key_node, said, f"write a decimal point: {above[0]}: {above[1]}.{key}"
            elif found := _PAIR.fullmatch(key):
                said = f"{prefix[:-1] or 'a mapping'} has the key {key!r} without a value"
                colon = "a space behind the colon" if key[len(found[1])] == ":" else "a colon"
                yield key_node, said, f"write {colon}: {{{found[1]}: {found[2]}}}"
        above = (key, str(value_node.value))
