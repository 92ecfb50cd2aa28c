"""The config of a run: read, merged, typed, checked, with the origin of every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from hpc_train.config import values as checks
from hpc_train.config.assets import config_dir
from hpc_train.config.compose import compose
from hpc_train.config.flags import FLAGS
from hpc_train.config.keys import FIELDS, REQUIRED_KEYS, SECTIONS, TEXT_KEYS
from hpc_train.config.origins import Origins
from hpc_train.config.schema import Config
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError

__all__ = ["LoadedConfig", "load"]


@dataclass(frozen=True, kw_only=True)
class LoadedConfig:
    """A config that reads well.

    Attributes:
        config: The values.
        origins: Where each comes from.
        files: Every file that was read, the user's own last.
    """

    config: Config
    origins: Origins
    files: tuple[Path, ...]


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    flags: Mapping[str, object] | None = None,
    assets: Path | None = None,
) -> LoadedConfig:
    """Read a config file and what it builds on, with the command line over it.

    Args:
        path: The YAML file.
        overrides: `key=value`, the last one wins.
        flags: Values by the names of `FLAGS`; they win over everything; None leaves one out.
        assets: Folder of the configs that come with hpc-train; found by itself.

    Raises:
        ConfigError: naming file, line, key and what to write instead.
    """
    composed = compose(Path(path), overrides, TEXT_KEYS, assets or config_dir())
    for name, value in (flags or {}).items():
        if name not in FLAGS:
            raise ConfigError(
                f"{name} is no option of hpc-train",
                did_you_mean(name, FLAGS) or f"known: {', '.join(FLAGS)}",
            )
        if value is not None:
            composed.merge(_nest(FLAGS[name].key, value), {}, FLAGS[name].option)
    origins = composed.origins
    checks.read_switches(composed.values)
    _check_keys(composed.values, origins, Path(path))
    checks.check_texts(composed.values, origins)
    config = _typed(composed.values, origins, Path(path))
    checks.check_meaning(config, origins)
    return LoadedConfig(config=config, origins=origins, files=tuple(composed.files))


def _nest(key: str, value: object) -> dict[str, Any]:
    nested: Any = value
    for name in reversed(key.split(".")):
        nested = {name: nested}
    return dict(nested)


def _check_keys(values: Mapping[str, Any], origins: Origins, path: Path) -> None:
    for name, value in values.items():
        if name not in FIELDS:
            raise _unknown(name, FIELDS, origins)
        if name in SECTIONS:
            _check_section(name, value, origins)
    for name, example in REQUIRED_KEYS.items():
        if values.get(name) is None:
            raise ConfigError(f"{path}: {name} is missing", f"write {example}")


def _check_section(name: str, value: Any, origins: Origins) -> None:
    if not isinstance(value, Mapping):
        raise origins.error(
            name,
            f"is {value!r}",
            f"it is a section: write keys below it, or leave out {name}",
        )
    for key in value:
        if key not in SECTIONS[name]:
            raise _unknown(f"{name}.{key}", SECTIONS[name], origins)


def _unknown(full: str, known: Sequence[str], origins: Origins) -> ConfigError:
    section, _, key = full.rpartition(".")
    places = [name for name in FIELDS if name == key]
    places += [f"{name}.{key}" for name, keys in SECTIONS.items() if key in keys]
    hint = f"did you mean '{places[0]}'?" if places else ""
    hint = hint or did_you_mean(key, known, prefix=f"{section}." if section else "")
    if not hint and section == "slurm":
        hint = f"other options of sbatch go under slurm.extra: {{{key.replace('_', '-')}: ...}}"
    return origins.error(full, "is no key of hpc-train", hint or f"known: {', '.join(known)}")


def _typed(values: dict[str, Any], origins: Origins, path: Path) -> Config:
    values = dict(values)
    # Lines for the shell are the shell's: "${HOME}" in them is no interpolation of ours.
    values["env"] = env = dict(values.get("env", {}))
    setup = env.pop("setup", None)
    checks.check_setup(setup, origins)
    checks.check_interpolations(values, origins)
    try:
        merged = OmegaConf.unsafe_merge(OmegaConf.structured(Config), OmegaConf.create(values))
        config = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        raise _from_omegaconf(error, origins, path) from error
    if not isinstance(config, Config):
        raise TypeError(f"OmegaConf made a {type(config)} of the schema")
    if setup is not None:
        config.env.setup = list(setup)
    return config


def _from_omegaconf(error: OmegaConfBaseException, origins: Origins, path: Path) -> ConfigError:
    key = (error.full_key or "").replace("[", ".").replace("]", "")
    message = str(error.msg or error).splitlines()[0]
    if not key:
        return ConfigError(f"{path}: {message}", "check the values")
    return checks.explain(key, message, origins)
