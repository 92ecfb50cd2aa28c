"""Texts without quotes that YAML makes something else of: NO is false, and 1e3 a number."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

import yaml

from hpc_train.config.origins import Origins, UnquotedPlace
from hpc_train.config.python_values import in_yaml


def place_of(node: yaml.Node, where: str) -> str:
    """The place of a value, with what was written where YAML reads that as no text."""
    is_plain = isinstance(node, yaml.ScalarNode) and not node.style
    is_text = not is_plain or node.tag.endswith(":str")
    return where if is_text else UnquotedPlace.of_text(where, str(node.value))


def places_in(node: yaml.Node | None, key: str, where: str) -> dict[str, str]:
    """By dotted key the place of each value that YAML reads as no text, in the value of `key`."""
    pairs: Sequence[tuple[Any, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        pairs = [(name.value, value) for name, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        pairs = [*enumerate(node.value)]
    elif node is not None and isinstance(place := place_of(node, where), UnquotedPlace):
        return {key: place}
    found: dict[str, str] = {}
    for name, value in pairs:
        found |= places_in(value, f"{key}.{name}", where)
    return found


def told_unquoted(
    key: str, value: Any, elements: Sequence[int], origins: Origins, told: tuple[str, str]
) -> tuple[str, str]:
    """What to say of a value that has to be a text, or a list of them, and what to write.

    Args:
        key: Dotted.
        value: Of the key.
        elements: Those that are no texts; none where it is the value itself.
        origins: For what was written.
        told: What is said of it, ending in what the class takes, and what to write, where what was
            written is not known.
    """
    keys = [f"{key}.{index}" for index in elements] or [key]
    words = [it for it in map(origins.written, keys) if it]
    if len(words) < len(keys):
        return told
    read = [in_yaml(value[index]) for index in elements] or [in_yaml(value)]
    pairs = dict(zip(words, read, strict=True))
    said = " and ".join(f"{word}, which {_to_yaml(word, it)}" for word, it in pairs.items())
    message = f"{'has' if elements else 'is'} {said}, and {told[0].rpartition(', and ')[2]}"
    if "null" in pairs.values():
        return message, told[1]
    if origins.is_typed(key):
        texts = dict(zip(elements, words, strict=False))
        whole = [texts.get(index, it) for index, it in enumerate(value)] if elements else words[0]
        return message, _typed_in_quotes(key, whole)
    it = "each" if pairs.keys() - words[:1] else "it"
    return message, f"put {it} in quotes: {', '.join(map(json.dumps, pairs))}"


def quotes_for(key: str, text: str, values: Any, origins: Origins) -> str:
    """How a text is put in quotes, alone or in a list, so that they outlive a shell.

    Args:
        key: Dotted, of the text.
        text: As it was written.
        values: Of the whole config; a number of it that was written as another text has a `text`.
        origins: For whether it was typed.
    """
    if not origins.is_typed(key):
        return f"put it in quotes: {json.dumps(text)}"
    above, _, index = key.rpartition(".")
    for name in above.split("."):
        values = values[int(name) if isinstance(values, list) else name]
    if isinstance(values, list) and index.isdecimal() and origins.is_typed(above):
        return _typed_in_quotes(above, [getattr(it, "text", it) for it in values])
    return _typed_in_quotes(key, text)


def _typed_in_quotes(key: str, value: Any) -> str:
    return f"put it in quotes: {shlex.quote(f'{key}={in_yaml(value)}')}"


def _to_yaml(word: str, read: str) -> str:
    return f"YAML reads as {read}" if word != read else "is no text to YAML"


def no_text_hint(value: object) -> str:
    """What to write for a value that is no text, where it is not known what was written."""
    if value is None:
        return "write a text, or leave it out"
    if isinstance(value, bool):
        return "put the word in quotes: yes, no, on and off are true and false to YAML"
    return f'write a text, in quotes where YAML sees another thing in it: "{value}"'
