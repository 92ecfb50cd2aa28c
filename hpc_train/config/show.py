"""The resolved config as YAML, with the origin of every value."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from hpc_train.config.compose import keys_below
from hpc_train.config.keys import OF_THE_SCRIPT
from hpc_train.config.origins import DEFAULT, Origins
from hpc_train.config.schema import Config
from hpc_train.config.specs import is_object, read_tree

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

IsLine = Callable[[str, list[Any]], bool]
_COLUMN = 44


def to_yaml(config: Config) -> str:
    """The resolved config, which loads to the same values again."""
    values = loadable(config)
    return "".join(line + "\n" for line, _ in _lines(values, "", 0, lambda _key, _list: True))


def show_lines(loaded: LoadedConfig) -> list[str]:
    """One line a value: YAML that loads again, and behind a `#` where the value comes from."""
    places = _Places(loaded.origins)
    lines = []
    for line, key in _lines(loadable(loaded.config), "", 0, places.is_one):
        lines.append(f"{line:<{_COLUMN}} # {places.of(key)}" if key else line)
    return lines


def plain_lines(loaded: LoadedConfig) -> list[str]:
    """The same values in one form: a class by class_path and init_args, a list's elements apart."""
    values = read_tree(loadable(loaded.config), "")
    return [line for line, _ in _lines(values, "", 0, lambda _key, of: not any(map(is_object, of)))]


class _Places:
    """Where values come from, also those in a list."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._holders: dict[str, str] = {}  # of a value in a list that is written out: the list

    def is_one(self, key: str, value: Any) -> bool:
        """Whether all that is in the list `value` comes from one place; else it is written out."""
        self._holders |= {below: key for below in keys_below(value, key) if below != key}
        return len({self.of(below) for below in keys_below(value, key)}) == 1

    def of(self, key: str) -> str:
        """The place of `key`; in a list there are no defaults, and what is above may tell it."""
        while key in self._holders and self._origins.of(key) == DEFAULT:
            key = key.rpartition(".")[0]
        return self._origins.of(key)


def loadable(config: Config) -> dict[str, Any]:
    """As a mapping in which a `$` that is no interpolation any more stays one sign."""
    values = dataclasses.asdict(config)
    script, env = values["script"], values["env"]
    is_script = isinstance(script, Mapping) and bool(script.get("path"))
    for name in OF_THE_SCRIPT if is_script else ("script",):
        del values[name]
    # Is not interpolated when it is read; a section that Python code has set may be without it.
    setup = {"setup": env.pop("setup")} if isinstance(env, dict) and "setup" in env else {}
    escaped: dict[str, Any] = escape(values)
    if setup:
        escaped["env"].update(setup)
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


def _lines(
    values: Mapping[str, Any], prefix: str, depth: int, is_line: IsLine
) -> Iterator[tuple[str, str]]:
    """Pairs of a line and the key whose value it shows; an empty key where it shows none.

    Args:
        is_line: Whether the list of a key is one line.
    """
    indent = "  " * depth
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield f"{indent}{_scalar(name)}:", ""
            yield from _lines(value, f"{key}.", depth + 1, is_line)
        elif isinstance(value, list) and not is_line(key, value):
            yield f"{indent}{_scalar(name)}:", ""
            yield from _elements(value, key, depth + 1, is_line)
        else:
            yield f"{indent}{_scalar(name)}: {_scalar(value)}", key


def _elements(
    values: list[Any], key: str, depth: int, is_line: IsLine
) -> Iterator[tuple[str, str]]:
    indent = "  " * depth
    for number, value in enumerate(values):
        of_element = f"{key}.{number}"
        if isinstance(value, Mapping) and value:
            (first, its_key), *rest = _lines(value, f"{of_element}.", depth + 1, is_line)
            yield f"{indent}- {first.lstrip()}", its_key
            yield from rest
        elif isinstance(value, list) and not is_line(of_element, value):
            yield f"{indent}-", ""
            yield from _elements(value, of_element, depth + 1, is_line)
        else:
            yield f"{indent}- {_scalar(value)}", of_element


def _scalar(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False
    )
    return str(text).removesuffix("...\n").rstrip("\n")
