"""Files that build on others, a site profile, the command line: merged, with every origin kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.keys import SECTIONS
from hpc_train.config.origins import Origins
from hpc_train.config.read import Source, parse_value, read_file
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError

__all__ = ["COMMAND_LINE", "Composed", "compose"]

COMMAND_LINE = "command line"
_BASES = ("defaults", "base")
_PROFILE = "cluster_profile"
_KEY = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*\Z")


class Composed:
    """Nested values under merging, and the origin of each."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins = Origins()
        self.files: list[Path] = []

    def merge(self, values: Mapping[str, Any], places: Mapping[str, str], place: str) -> None:
        """Lay `values` over what is there.

        Args:
            values: Nested; a mapping is merged key by key, anything else replaces.
            places: Origins by dotted key.
            place: Origin of a key that `places` does not hold.
        """
        self._merge(self.values, values, "", places, place)

    def _merge(
        self,
        into: dict[str, Any],
        values: Mapping[str, Any],
        prefix: str,
        places: Mapping[str, str],
        place: str,
    ) -> None:
        _drop_arguments_of_another_class(into, values, prefix, self.origins)
        for name, value in values.items():
            key = f"{prefix}{name}"
            here = places.get(key, place)
            if isinstance(value, Mapping) and isinstance(into.get(name), dict):
                self._merge(into[name], value, f"{key}.", places, here)
                continue
            into[name] = _copy(value)
            self.origins.drop(key)
            for written in _keys(value, key):
                self.origins.put(written, places.get(written, here))


def compose(path: Path, overrides: Sequence[str], texts: frozenset[str], assets: Path) -> Composed:
    """Read `path` and all it builds on, then the overrides.

    The later wins: files under `defaults` in their order, the site profile, the file itself, the
    command line.

    Args:
        path: The config file.
        overrides: `key=value`, as on the command line.
        texts: Keys whose value is text, so that `slurm.time=1:30:00` needs no quotes there.
        assets: Folder of the configs that come with hpc-train.

    Raises:
        ConfigError: for everything that cannot be read or found, with file and line.
    """
    composed = Composed()
    pairs = [_split(override) for override in overrides]
    chosen = [text for key, text in pairs if key == _PROFILE]
    _add_file(composed, path, assets, (), chosen[-1] if chosen else None)
    for key, text in pairs:
        if key != _PROFILE:
            _set(composed, key, text if key in texts else parse_value(text, key))
    return composed


def _add_file(
    composed: Composed,
    path: Path,
    assets: Path,
    above: tuple[Path, ...],
    profile: str | None = None,
) -> None:
    if path.resolve() in above:
        raise ConfigError(f"{path} builds on itself", "remove it from `defaults` of one file")
    source = read_file(path)
    above = (*above, path.resolve())
    for name in _BASES:
        for base in _base_names(source, name):
            _add_file(composed, _find(base, source, name, assets), assets, above)
    own_profile = source.values.pop(_PROFILE, None)
    site = profile or own_profile
    if site is not None:
        if not isinstance(site, str):
            raise _at(
                source, _PROFILE, f"is {site!r}", "write the name of a file in configs/clusters"
            )
        _add_file(composed, _find(f"clusters/{site}", source, _PROFILE, assets), assets, above)
    for section in SECTIONS:  # a section whose lines are all comments says nothing
        if source.values.get(section, ...) is None:
            del source.values[section]
    composed.files.append(path)
    composed.merge(source.values, source.lines, str(path))


def _base_names(source: Source, key: str) -> list[str]:
    bases = source.values.pop(key, None)
    if bases is None:
        return []
    names = bases if isinstance(bases, list) else [bases]
    for name in names:
        if not isinstance(name, str):
            raise _at(
                source, key, f"holds {name!r}", "write names of files: [base.yaml, clusters/SITE]"
            )
    return [name for name in names if name != "_self_"]


def _find(name: str, source: Source, key: str, assets: Path) -> Path:
    """The file itself beside `source`, or in a `configs` folder above it, or among our own."""
    here = source.path.parent
    wanted = [Path(name)] if Path(name).suffix in (".yaml", ".yml") else [Path(f"{name}.yaml")]
    parents = [here, *(folder / "configs" for folder in [here, *here.resolve().parents])]
    folders = [*parents, assets]
    for folder in folders:
        for candidate in wanted:
            if (folder / candidate).is_file():
                return folder / candidate
    known = sorted(
        {
            (Path(name).parent / entry.stem).as_posix()
            for folder in folders
            if (folder / name).parent.is_dir()
            for entry in (folder / name).parent.glob("*.yaml")
        }
    )
    hint = did_you_mean(name, known) or (f"there are: {', '.join(known[:6])}" if known else "")
    raise _at(source, key, f"names {name}, and there is no such file", hint)


def _at(source: Source, key: str, message: str, hint: str) -> ConfigError:
    place = source.lines.get(key, str(source.path))
    return ConfigError(f"{place}: {key} {message}", hint)


def _split(override: str) -> tuple[str, str]:
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals:
        raise ConfigError(
            f"{COMMAND_LINE}: {override!r} is no key=value", "write as in trainer.max_epochs=3"
        )
    if _KEY.match(key) is None:
        raise ConfigError(
            f"{COMMAND_LINE}: {key!r} is no key",
            "write the name alone, as in trainer.max_epochs=3; key=null empties it",
        )
    return key, text


def _set(composed: Composed, key: str, value: Any) -> None:
    *parents, last = key.split(".")
    nested: dict[str, Any] = {last: value}
    at: Any = composed.values
    for depth, name in enumerate(parents):
        at = at.get(name) if isinstance(at, dict) else at
        if isinstance(at, list):
            parent = ".".join(parents[: depth + 1])
            raise ConfigError(
                f"{COMMAND_LINE}: {parent} is a list, and {key} would replace it",
                f"give the whole list: {parent}=[...]",
            )
    for name in reversed(parents):
        nested = {name: nested}
    composed.merge(nested, {}, COMMAND_LINE)


def _drop_arguments_of_another_class(
    into: dict[str, Any], values: Mapping[str, Any], prefix: str, origins: Origins
) -> None:
    """Another class_path begins with its own arguments, as Lightning's CLI has it."""
    for name in ("class_path", "_target_"):
        if name in values and name in into and values[name] != into[name]:
            for stale in [key for key in into if key != name]:
                del into[stale]
                origins.drop(f"{prefix}{stale}")


def _keys(value: Any, key: str) -> Iterator[str]:
    """`key` and every key below it."""
    yield key
    if isinstance(value, (Mapping, list)):
        for name, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _keys(item, f"{key}.{name}")


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
