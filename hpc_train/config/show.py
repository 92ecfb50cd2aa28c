"""The resolved config as YAML, with the origin of every value."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from hpc_train.config.keys import OF_THE_SCRIPT
from hpc_train.config.schema import Config

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

_COLUMN = 44


def to_yaml(config: Config) -> str:
    """The resolved config, which loads to the same values again."""
    return "".join(line + "\n" for line, _ in _lines(_loadable(config), "", 0))


def show_lines(loaded: LoadedConfig) -> list[str]:
    """One line a value: YAML that loads again, and behind a `#` where the value comes from."""
    lines = []
    for line, key in _lines(_loadable(loaded.config), "", 0):
        lines.append(f"{line:<{_COLUMN}} # {loaded.origins.of(key)}" if key else line)
    return lines


def _loadable(config: Config) -> dict[str, Any]:
    """As a mapping in which a `$` that is no interpolation any more stays one sign."""
    values = dataclasses.asdict(config)
    for name in OF_THE_SCRIPT if config.script.path else ("script",):
        del values[name]
    setup = values["env"].pop("setup")  # is not interpolated when it is read
    escaped: dict[str, Any] = escape(values)
    escaped["env"]["setup"] = setup
    return escaped


def escape(value: Any) -> Any:
    """The same texts, written so that OmegaConf reads no interpolation in them."""
    if isinstance(value, Mapping):
        return {name: escape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [escape(item) for item in value]
    if isinstance(value, str):
        # OmegaConf: backslashes count only in front of "${", where each stands for itself doubled.
        return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)
    return value


def _lines(values: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    """Pairs of a line and the key whose value it shows; an empty key where it shows none."""
    indent = "  " * depth
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield f"{indent}{_scalar(name)}:", ""
            yield from _lines(value, f"{key}.", depth + 1)
        else:
            yield f"{indent}{_scalar(name)}: {_scalar(value)}", key


def _scalar(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False
    )
    return str(text).removesuffix("...\n").rstrip("\n")
