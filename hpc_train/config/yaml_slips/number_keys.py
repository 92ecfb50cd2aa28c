"""Keys of a mapping that are no text: whole numbers among the arguments of a class stay numbers."""

from __future__ import annotations

import re
from typing import Any

import yaml

from hpc_train.errors import ConfigError

_STR, _INT, _FLOAT, _MERGE = (f"tag:yaml.org,2002:{it}" for it in ("str", "int", "float", "merge"))
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")  # as Python would write it
# What stands below the name of an argument, in each of the two forms of a class.
_BELOW_ARGUMENT = re.compile(
    r"(?:sweep\.)?(?:"
    r"(?:model|data|trainer|loggers)\.(?:.*\.)?init_args\.[^.]+\."
    r"|(?:model|data|trainer\.\w+\.\d+|loggers\.\d+)\.(?!init_args\.)[^.]+\."
    r")"
)


def key_of(node: yaml.Node) -> Any:
    """The key that a mapping has of a node."""
    is_whole = node.tag == _INT and _WHOLE.fullmatch(str(node.value))
    return int(node.value) if is_whole else node.value


def check_kind(node: yaml.Node, prefix: str, where: str) -> None:
    """Refuse a key that is no text, but for a whole number in an argument of a class.

    Args:
        node: A scalar.
        prefix: The mapping's dotted key, with a dot behind it.
        where: File and line, or the command line.

    Raises:
        ConfigError: with what to write.
    """
    if node.tag in (_STR, _MERGE):
        return
    is_below = _BELOW_ARGUMENT.match(prefix) is not None
    if is_below and isinstance(key_of(node), int):
        return
    hint = f'write it in quotes: "{node.value}":'
    if is_below and node.tag == _FLOAT:
        hint = f"write a list of pairs, and dict(...) in the class: [[{node.value}, ...], ...]"
    raise ConfigError(f"{where}: the key {prefix}{node.value} is no text in YAML", hint)


def check_all_kinds(node: yaml.Node | None, prefix: str, where: str) -> None:
    """The same of every key in a value, however deep."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                check_kind(key_node, prefix, where)
                check_all_kinds(value_node, f"{prefix}{key_node.value}.", where)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            check_all_kinds(item, f"{prefix}{index}.", where)


def check_same_kind(name: Any, into: dict[Any, Any], key: str, place: str, there: str) -> None:
    """Refuse a number in one place that is a text in another: both would be in the mapping.

    Args:
        name: The key in the mapping, `key` with all above it.
        into: Where it is merged into.
        place: Of the name; `there` is that of the other.
    """
    other: Any = str(name) if isinstance(name, int) else key_of(yaml.ScalarNode(_INT, name))
    if name not in into and other in into and type(other) is not type(name):
        here, other_is = ("number", "text") if isinstance(name, int) else ("text", "number")
        said = f"{place}: the key {key} is a {here}, and a {other_is} in {there}"
        raise ConfigError(said, f'write "{name}" in quotes in both, or in neither')


def meant_key(word: str, holder: Any) -> Any:
    """The key that a word of a dotted key means in a mapping that has numbers as its keys."""
    has_numbers = isinstance(holder, dict) and any(isinstance(it, int) for it in holder)
    is_whole = has_numbers and word not in holder and _WHOLE.fullmatch(word)
    return int(word) if is_whole else word
