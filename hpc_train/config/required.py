"""Keys that have no default, and what to write for one that is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.keys import OF_THE_SCRIPT, REQUIRED_KEYS
from hpc_train.config.origins import Origins
from hpc_train.config.schema import SlurmConfig
from hpc_train.errors import ConfigError


def check_required(values: Mapping[str, Any], origins: Origins, path: Path) -> None:
    """Refuse a config without a key that has no default.

    Raises:
        ConfigError: with an example of each that is missing.
    """
    script = values.get("script") or {}
    missing = {
        name: example
        for name, example in REQUIRED_KEYS.items()
        if values.get(name) is None and not (script.get("path") and name in OF_THE_SCRIPT)
    }
    more = ""
    if "data" in missing and values:
        from hpc_train.config.fit.missing_data import missing_data  # on the way to an error

        more, missing["data"] = missing_data(values.get("model"), missing["data"])
    for name in missing:
        if name in values:
            own = more if name == "data" else ""
            write = missing[name] if own else f"write {missing[name]}"
            raise origins.error(name, f"is null{own}", write)
    if "global_batch_size" in missing and (own := _own_batch_size(values)):
        missing["global_batch_size"] = own
    if missing:
        are = "is missing" if len(missing) == 1 else "are missing"
        error = ConfigError(
            f"{path}: {', '.join(missing)} {are}{more}" if values else f"{path}: no key is in it",
            f"{'' if more and len(missing) == 1 else 'write '}{'; '.join(missing.values())}",
        )
        error.keys = tuple(missing)
        raise error


def _own_batch_size(values: Mapping[str, Any]) -> str:
    """The global batch size that the user's own `batch_size` makes in this shape; else empty."""
    data, slurm = values.get("data"), values.get("slurm")
    arguments = data.get("init_args", data) if isinstance(data, Mapping) else None
    size = arguments.get("batch_size") if isinstance(arguments, Mapping) else None
    shape = {**dataclasses.asdict(SlurmConfig()), **(slurm if isinstance(slurm, Mapping) else {})}
    nodes, gpus = shape["nodes"], shape["gpus_per_node"]
    if not all(type(it) is int and it > 0 for it in (size, nodes, gpus)):
        return ""
    ranks = nodes * gpus
    on = f"{ranks} rank{'s' if ranks != 1 else ''}"
    return f"global_batch_size: {size * ranks} (your batch_size, {size}, times {on})"
