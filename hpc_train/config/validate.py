"""What only the machine can tell of a config: are the classes there, does the Trainer agree."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.classes import ArgumentError, check_class
from hpc_train.config.load import LoadedConfig
from hpc_train.config.origins import Origins
from hpc_train.config.schema import Config, EnvConfig
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET, is_object, read_object
from hpc_train.config.trainer_args import check_trainer
from hpc_train.errors import ConfigError

__all__ = ["check"]

# Arguments that a rank gives by itself where a class takes them and the config is silent.
_FILLED_IN: Mapping[str, Sequence[str]] = {
    "data": ("batch_size", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor"),
    "loggers": ("save_dir", "name", "version", "id", "project", "resume", "dir"),
}


def check(loaded: LoadedConfig, *, workdir: Path, search_path: Sequence[str] | None = None) -> None:
    """Hold a config against what is installed; reads files, imports nothing of the user's.

    Args:
        loaded: The config.
        workdir: The folder the ranks start in, where the user's modules are.
        search_path: `sys.path` by default.

    Raises:
        ConfigError: with file and line of the config, and a fix.
    """
    installed = list(sys.path if search_path is None else search_path)
    check_trainer(loaded.config.trainer, loaded.origins, search_path=installed)
    elsewhere = _other_environment(loaded.config.env)
    path = [str(workdir), *_own_folders(loaded.config.env, workdir)]
    path += [] if elsewhere else installed
    for key, spec in _objects(loaded.config):
        _check_object(key, spec, loaded.origins, path, elsewhere=elsewhere)


def _check_object(
    key: str, spec: dict[str, Any], origins: Origins, path: Sequence[str], *, elsewhere: bool
) -> None:
    form = TARGET if TARGET in spec else CLASS_PATH
    arguments_key = key if TARGET in spec else f"{key}.{INIT_ARGS}"
    class_path, arguments = read_object(spec, key, origins)
    filled_in = next((names for start, names in _FILLED_IN.items() if key.startswith(start)), ())
    try:
        check_class(
            class_path,
            arguments,
            search_path=path,
            filled_in=filled_in,
            only_found=elsewhere,
        )
    except ArgumentError as error:
        message = f": {error.message}"
        raise origins.error(f"{arguments_key}.{error.name}", message, error.hint) from error
    except ConfigError as error:
        raise origins.error(f"{key}.{form}", f": {error.message}", error.hint) from error


def _other_environment(env: EnvConfig) -> bool:
    """Whether the ranks may see packages that are not seen here."""
    return bool(env.conda or env.venv or env.modules or env.setup)


def _own_folders(env: EnvConfig, workdir: Path) -> list[str]:
    """Where modules are found by the config's own doing: PYTHONPATH, and its venv."""
    folders = [
        str(workdir / folder)
        for folder in env.variables.get("PYTHONPATH", "").split(":")
        if folder and "$" not in folder
    ]
    if env.venv:
        venv = workdir / Path(env.venv).expanduser()
        folders += [str(site) for site in venv.glob("lib/python3*/site-packages")]
    return folders


def _objects(config: Config) -> Iterator[tuple[str, dict[str, Any]]]:
    for key in ("model", "data"):
        yield key, getattr(config, key)
        yield from _nested(getattr(config, key), key)
    yield from _nested(config.trainer, "trainer")
    yield from _nested(config.loggers, "loggers")


def _nested(value: Any, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        below = f"{key}.{name}"
        if is_object(item):
            yield below, item
        if isinstance(item, (dict, list)):
            yield from _nested(item, below)
