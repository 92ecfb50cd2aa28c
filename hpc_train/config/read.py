"""One YAML file, as plain values, with the line of every key."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hpc_train.config.keys import is_text
from hpc_train.config.long_paths import how_to_read
from hpc_train.config.meant_words.near_files import (
    MADE_BY_US,
    SCRIPTS,
    above_here,
    configs_in,
    near_files,
)
from hpc_train.config.words import WEIGHTS, plain_one
from hpc_train.config.yaml_slips.flow_slips import all_flow_slips, flow_slips
from hpc_train.config.yaml_slips.keys_twice import here_twice
from hpc_train.config.yaml_slips.not_yaml import no_mapping, not_yaml
from hpc_train.config.yaml_slips.number_keys import check_all_kinds, check_kind, key_of
from hpc_train.config.yaml_slips.plain_texts import place_of, places_in
from hpc_train.errors import ConfigError


class Sexagesimal(int):
    """An integer that YAML 1.1 made of `1:30:00` or `0123`; `text` is what the user wrote."""

    text: str


@dataclass(frozen=True)
class Source:
    """What one file says.

    Attributes:
        path: The file, as the user would type it.
        values: Nested mappings, lists and scalars.
        lines: For each dotted key `FILE:LINE`.
    """

    path: Path
    values: dict[str, Any]
    lines: dict[str, str]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.1 as PyYAML reads it, where `1e-3` is a number too, and dates stay text."""


_SHELL = (
    "a shell script",
    "hpc-train translate {0} makes a config of it; or name the .py that it starts",
)
_WEIGHTS = (
    "a checkpoint",
    "`hpc-train resume RUN` goes on with a run; a config begins with its weights: init_from: FILE",
)
_LOG = ("a log", "hpc-train diagnose {0} reads it; a config ends in .yaml, a script in .py")
# What is named in a config's place.
_OTHER_FILES = {
    ".ipynb": ("a notebook", "put the code into a .py; in a notebook: hpc_train.submit(...)"),
    **dict.fromkeys(SCRIPTS, _SHELL),
    **dict.fromkeys((".out", ".err", ".log"), _LOG),
    **dict.fromkeys(WEIGHTS, _WEIGHTS),
    ".toml": ("TOML", "write it as YAML: key: value"),
    ".gz": ("compressed", "gunzip it"),
}
_COMMENT = re.compile(r"(.*?)\s*(?<!\S)//\s+(.*)", re.DOTALL)
_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)[eE][-+]?[0-9]+\Z"),
    list("-+0123456789."),
)


def read_file(path: Path) -> Source:
    """Read a config file.

    Raises:
        ConfigError: when there is none, it cannot be read, is not YAML, or has a key twice.
    """
    if path.suffix in _OTHER_FILES and path.is_file():
        what, fix = _OTHER_FILES[path.suffix]
        fix = fix.replace("{0}", shlex.quote(str(path)))
        if what == _SHELL[0] and MADE_BY_US in path.read_text("utf-8", errors="replace"):
            fix = f"it is a rendered training: sbatch {shlex.quote(str(path))}"
        raise ConfigError(f"{path} is {what}, and no config", fix)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if path.is_symlink():
            message = f"{path} is a link to {path.readlink()}, which is not there"
            raise ConfigError(message, "name the file itself") from None
        hint = above_here(path) or near_files(path)
        raise ConfigError(f"{path}: there is no such file", hint) from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder", configs_in(path)) from None
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        message = f"{path}:{line}: not text in UTF-8, for its byte 0x{byte:02x}"
        raise ConfigError(message, "save the file as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", how_to_read(error)) from error
    return read_text(text, path)


def read_text(text: str, path: Path) -> Source:
    """As `read_file`, for text that is at hand; `path` is for messages."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Source(path, {}, {})
        if not isinstance(node, yaml.MappingNode):
            raise no_mapping(node, path, text)
        lines = dict(_lines(loader, node, "", path))
        values = _construct(loader, node)
    except yaml.MarkedYAMLError as error:
        raise not_yaml(error, path, text) from error
    except RecursionError:
        hint = "an anchor (&name) must not hold its own alias (*name)"
        raise ConfigError(f"{path} is nested without end, or too deeply", hint) from None
    except (yaml.YAMLError, ValueError) as error:
        words = " ".join(str(error).split())
        raise ConfigError(f"{path} is not YAML: {words}", "remove what is no text") from error
    finally:
        loader.dispose()
    return Source(path, values, lines)


def parse_value(text: str, what: str, places: dict[str, str] | None = None) -> Any:
    """The value of `key=value` on a command line, read as YAML; empty text is null.

    `places` is given the place of each value of it that YAML reads as no text.

    Raises:
        ConfigError: when it is not YAML.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        for _, message, hint in all_flow_slips(node, f"{what}."):
            raise ConfigError(f"command line: {message}", hint)
        check_all_kinds(node, f"{what}.", "command line")
        if places is not None:
            places |= places_in(node, what, "command line")
        return None if node is None else _construct(loader, node)
    except (yaml.YAMLError, ValueError) as error:
        problem = getattr(error, "problem", None) or str(error)
        hint = "close its brackets, or put it in quotes"
        if re.search(r"[\w\"']:[{\[]", text) and text.count("{") == text.count("}"):
            hint = "write a space behind each colon"
        raise ConfigError(f"{what}: {text!r} is not YAML: {problem}", hint) from error
    finally:
        loader.dispose()


def _construct(loader: Any, node: yaml.Node) -> Any:
    value = loader.construct_document(node)
    return _mark(node, value)


def _mark(node: yaml.Node, value: Any) -> Any:
    """Mark the integers that were written as 1:30:00, which only the node still knows."""
    if isinstance(node, yaml.MappingNode) and isinstance(value, dict):
        for key_node, value_node in node.value:
            if (key := key_of(key_node)) in value:
                value[key] = _mark(value_node, value[key])
    elif isinstance(node, yaml.SequenceNode) and isinstance(value, list):
        return [_mark(*pair) for pair in zip(node.value, value, strict=True)]
    elif type(value) in (int, float) and re.match(r".*:|[-+]?0\d", str(node.value)):
        marked = Sexagesimal(value)
        marked.text = str(node.value)
        return marked
    return value


def _lines(loader: Any, node: yaml.Node, prefix: str, path: Path) -> Iterator[tuple[str, str]]:
    if isinstance(node, yaml.ScalarNode) and not node.style:
        _check_comment(node.value, prefix[:-1], f"{path}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield f"{prefix}{index}", place_of(item, f"{path}:{item.start_mark.line + 1}")
            yield from _lines(loader, item, f"{prefix}{index}.", path)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for slip, message, hint in flow_slips(node, prefix):
        raise ConfigError(f"{path}:{slip.start_mark.line + 1}: {message}", hint)
    for key_node, _ in node.value:
        _check_key(key_node, node, seen, prefix, path)
    loader.flatten_mapping(node)  # resolves `<<: *anchor`; keys of the mapping itself come last
    for key_node, value_node in node.value:
        key, where = f"{prefix}{key_node.value}", f"{path}:{key_node.start_mark.line + 1}"
        _check_text(loader, value_node, key, where)
        is_plain = isinstance(value_node, yaml.ScalarNode) and not value_node.style
        if is_plain and value_node.value:  # it may stand on a line below its key
            where = f"{path}:{value_node.start_mark.line + 1}"
        yield key, place_of(value_node, where)
        yield from _lines(loader, value_node, f"{key}.", path)


def _check_text(loader: Any, node: yaml.Node, key: str, where: str) -> None:
    """Refuse a text that would lose what was written: YAML reads 3.10 as 3.1, and 0123 as 83."""
    if not is_text(key) or not node.tag.endswith((":int", ":float")) or ":" in node.value:
        return
    value = loader.construct_object(node)
    if str(value) != node.value:
        message = f"{where}: {key} is {node.value}, which YAML reads as the number {value}"
        raise ConfigError(message, f'put it in quotes: "{node.value}"')


def _check_comment(text: str, key: str, where: str) -> None:
    """Refuse a text without quotes that ends in a comment of another language."""
    found = _COMMENT.fullmatch(text)
    if found and not key.startswith("env.setup"):
        hint = f"a comment begins with #: {found[1]} # {found[2]}; or put the text in quotes"
        raise ConfigError(f"{where}: {key} is {text!r}", hint)


def _check_key(
    key_node: yaml.Node, node: yaml.MappingNode, seen: set[str], prefix: str, path: Path
) -> None:
    line = key_node.start_mark.line + 1
    if not isinstance(key_node, yaml.ScalarNode):
        hint = "write `key: value`; {{...}} is a template's: a key's value is ${key} here"
        raise ConfigError(f"{path}:{line}: a key that is no plain word", hint)
    if key_node.tag == "tag:yaml.org,2002:merge":
        return  # may be there twice
    if not key_node.style and key_node.value[:1].isspace():  # which is no space to YAML
        raise ConfigError(f"{path}:{line}: the key {key_node.value!r}", plain_one(key_node.value))
    if key_node.value in ("-class_path", "-init_args", "-_target_"):
        hint = f"write a space behind the dash: - {key_node.value[1:]}: ..."
        raise ConfigError(f"{path}:{line}: the key {key_node.value!r}", hint)
    if key_node.value.startswith("//"):
        hint = f"a comment begins with #: # {key_node.value[2:].strip()}"
        raise ConfigError(f"{path}:{line}: the key {key_node.value!r}", hint)
    if re.fullmatch(r"[^(]*\)", key_node.value):
        message = f"{path}:{line}: {key_node.value!r} is the end of a bracket that YAML has not"
        raise ConfigError(message, "write a list: [8, 8] in place of (8, 8)")
    check_kind(key_node, prefix, f"{path}:{line}")
    if key_node.value in seen:
        raise here_twice(node, key_node, prefix, path)
    seen.add(key_node.value)
