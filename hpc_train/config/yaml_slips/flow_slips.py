"""Keys without a value in braces: what a decimal comma, or a colon without its space, has made."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import yaml

from hpc_train.config.keys import FIELDS, is_text

_PAIR = re.compile(r"([A-Za-z_][\w.-]*)[:=]\s*(?!//)(\S.*)")
_NUMBER = re.compile(r"([A-Za-z_]\w*) +([-+.\d][-+.\deE]*|true|false)")
GPUS_OF_A_RANK = "CUDA_VISIBLE_DEVICES"  # refused, with commas and without
GPUS_HINT = "remove it; hpc-train submit --devices 0,1 chooses GPUs of this machine"
_FORMAT = re.compile(r"[\w.]+:(?:0\d+|[\d.]*\.\d+|\d+)[defgsx%]")  # of a file's name: {epoch:02d}
_IN_A_SWEEP = re.compile(r"sweep\.(?:[A-Za-z_][\w-]*\.)*")  # and no list in it
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
    if slip := _values_of_a_sweep(node, prefix):
        yield slip
    for index, (key_node, value_node) in enumerate(node.value if node.flow_style else ()):
        key = str(key_node.value)
        if _is_alone(key_node, value_node):
            if key.isdecimal() and _DIGITS.fullmatch(above[1]):
                numbers = ",".join([above[1], *_numbers(node.value[index:])])
                many = "two" if numbers.count(",") == 1 else "several"
                said = f"{prefix}{above[0]} is {numbers}, which is {many} things to YAML"
                hint = f"write a decimal point: {above[0]}: {above[1]}.{key}"
                if numbers.count(",") > 1 or prefix == "env.variables.":
                    hint = f'put it in quotes: {above[0]}: "{numbers}"'
                yield key_node, said, GPUS_HINT if above[0] == GPUS_OF_A_RANK else hint
            elif (
                above[0] and is_text(f"{prefix}{above[0]}") and _has_no_colon(key_node, value_node)
            ):
                words = ",".join([above[1], *_words(node.value[index:])])
                said = f"{prefix}{above[0]} is {words}, and a comma ends a value in braces"
                yield key_node, said, f'put it in quotes: {above[0]}: "{words}"'
            elif found := _PAIR.fullmatch(key) or _NUMBER.fullmatch(key):
                said = f"{prefix[:-1] or 'a mapping'} has the key {key!r} without a value"
                colon = "a space behind the colon" if key[len(found[1])] == ":" else "a colon"
                hint = f"write {colon}: {{{found[1]}: {found[2]}}}"
                is_format = len(node.value) == 1 and _FORMAT.fullmatch(key)
                yield key_node, said, f'put it in quotes: "{{{key}}}"' if is_format else hint
        above = (key, str(value_node.value))


def _values_of_a_sweep(node: yaml.MappingNode, prefix: str) -> tuple[yaml.Node, str, str] | None:
    """`sweep: {seed: 1, 2}`: values without the brackets around them."""
    if not node.flow_style or not _IN_A_SWEEP.fullmatch(prefix):
        return None
    for index, (key_node, value_node) in enumerate(node.value[:-1]):
        first = str(value_node.value) if isinstance(value_node, yaml.ScalarNode) else ""
        behind = itertools.takewhile(_is_further_value, node.value[index + 1 :])
        more = [str(it.value) for it, _ in behind]
        if first and more:
            key, values = str(key_node.value), ", ".join([first, *more])
            said = f"{prefix}{key} is {values}, and a comma ends a value in braces"
            hint = f"write a list: {{{key}: [{values}]}}"
            if first.startswith("range("):
                hint = f'put it in quotes: {{{key}: "{values}"}}'
            return node.value[index + 1][0], said, hint
    return None


def _is_further_value(pair: tuple[yaml.Node, yaml.Node]) -> bool:
    word = str(pair[0].value)
    is_key = bool(re.match(r"[A-Za-z_]\w*\.\w", word)) or word in FIELDS
    return (
        _is_alone(*pair) and not is_key and not (_PAIR.fullmatch(word) or _NUMBER.fullmatch(word))
    )


def _is_alone(key_node: yaml.Node, value_node: yaml.Node) -> bool:
    """Whether a word without quotes stands there without a value."""
    is_plain = isinstance(key_node, yaml.ScalarNode) and not key_node.style
    is_empty = isinstance(value_node, yaml.ScalarNode) and not value_node.value
    return is_plain and is_empty and not getattr(value_node, "style", None)


def _has_no_colon(key_node: yaml.Node, value_node: yaml.Node) -> bool:
    """Whether nothing but a blank stands behind a word: a colon would move the empty value on."""
    is_near = value_node.start_mark.index - key_node.end_mark.index <= 1
    return is_near and _is_alone(key_node, value_node) and ":" not in str(key_node.value)


def _words(pairs: list[tuple[yaml.Node, yaml.Node]]) -> Iterator[str]:
    """The words that the commas have taken apart, up to the next key."""
    for key_node, _ in itertools.takewhile(lambda pair: _has_no_colon(*pair), pairs):
        yield str(key_node.value)


def _numbers(pairs: list[tuple[yaml.Node, yaml.Node]]) -> Iterator[str]:
    """The numbers that the commas have taken apart, up to the next key."""
    for key_node, value_node in pairs:
        if not (_is_alone(key_node, value_node) and str(key_node.value).isdecimal()):
            return
        yield str(key_node.value)
