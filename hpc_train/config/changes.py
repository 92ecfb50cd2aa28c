"""Values that Python code has set in a config since it was loaded: read anew, and checked."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.compose import Composed
from hpc_train.config.load import LoadedConfig, checked
from hpc_train.config.show import loadable
from hpc_train.config.validate import check_training
from hpc_train.errors import ConfigError

PLACE = "loaded.config"
_SETTLED_BY_US = ("init_from", "hosts")  # these get another value while a run is made


def settle_changes(loaded: LoadedConfig, *, workdir: Path) -> None:
    """Have values that were set since the load mean what they would in the file.

    Their types are the schema's from then on, and their origin is `loaded.config`.

    Raises:
        ConfigError: as for the file.
    """
    changed = [key for key, _ in _changed(loaded)]
    if not changed:
        return
    composed = Composed()
    composed.values = loadable(loaded.config)
    composed.origins = copy.deepcopy(loaded.origins)
    composed.files = [*loaded.files]
    for key in changed:
        composed.origins.put(key, PLACE)
    again = checked(composed, loaded.files[-1])
    check_training(again, workdir=workdir)
    for field in dataclasses.fields(loaded.config):
        setattr(loaded.config, field.name, getattr(again.config, field.name))
    for key in changed:
        loaded.origins.put(key, PLACE)
    loaded.as_read.update(dataclasses.asdict(loaded.config))


def refuse_changes(loaded: LoadedConfig) -> None:
    """Refuse a config that was changed where its file is read anew, for each point of a sweep.

    Raises:
        ConfigError: with the key and its value.
    """
    for key, value in _changed(loaded):
        hint = f"give it to load: hpc_train.load(PATH, '{key}={value}', sweep=[...])"
        raise ConfigError(f"{PLACE}: {key} was set after the load of a sweep", hint)


def _changed(loaded: LoadedConfig) -> Iterator[tuple[str, Any]]:
    """Each key whose value is another than it was, and the value."""
    if not loaded.as_read:  # of code of ours, which changes what it means to
        return
    now = dataclasses.asdict(loaded.config)
    for name in now:
        if name not in _SETTLED_BY_US:
            yield from _differing(name, loaded.as_read.get(name), now[name])


def _differing(key: str, before: Any, now: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(before, Mapping) and isinstance(now, Mapping) and now:
        for name in now:
            yield from _differing(f"{key}.{name}", before.get(name), now[name])
        if before.keys() - now.keys():
            yield key, now
    elif before != now or type(before) is not type(now):
        yield key, now
