"""The file that `accelerate config` writes, in a config's place: the line that stands for it.

Source: `ClusterConfig` of accelerate/commands/config/config_args.py; `num_processes` counts those
of all machines.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpc_train.errors import ConfigError

_ITS_OWN = ("compute_environment", "distributed_type", "machine_rank", "main_process_ip")
_LEAST = 2  # of them, and none of ours
_OURS = ("model", "data", "script", "global_batch_size")
_PLUGINS = {"fsdp_config": "fsdp_plugin", "deepspeed_config": "deepspeed_plugin"}
_NO_PRECISION = ("no", None, False)


def check_accelerate_config(values: Mapping[str, Any], path: Path) -> None:
    """Refuse a config of accelerate at once, with the line that trains so.

    Raises:
        ConfigError: in place of one for each of its keys.
    """
    if not _is_accelerates(values):
        return
    nodes, ranks = _shape(values)
    words = ["hpc-train submit", f"--nodes {nodes}", f"--gpus {ranks or 'N'}"]
    words += [_script_beside(path), *(f"{key}={value}" for key, value in _others(values).items())]
    beside = "".join(f"; {it}" for it in _plugins(values, path.name))
    raise ConfigError(
        f"{path}: this is a config of accelerate, and hpc-train starts the ranks itself",
        f"submit the script without it: {' '.join(words)}{beside}",
    )


def read_accelerate_config(path: Path) -> tuple[dict[str, Any], list[str]]:
    """What such a file is here, by key, and what it has that goes into the script.

    Both are empty of a file that is not there, or is another.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}, []
    if not isinstance(values, Mapping) or not _is_accelerates(values):
        return {}, []
    nodes, ranks = _shape(values)
    keys = {"slurm.nodes": nodes, **({"slurm.gpus_per_node": ranks} if ranks else {})}
    return {**keys, **_others(values)}, _plugins(values, path.name)


def _is_accelerates(values: Mapping[str, Any]) -> bool:
    return sum(it in values for it in _ITS_OWN) >= _LEAST and not any(it in values for it in _OURS)


def _shape(values: Mapping[str, Any]) -> tuple[int, int]:
    """The nodes, and the ranks of each, as far as the file says it; else 0."""
    nodes, ranks = values.get("num_machines"), values.get("num_processes")
    nodes = nodes if type(nodes) is int and nodes > 0 else 1
    known = type(ranks) is int and ranks > 0 and ranks % nodes == 0
    return nodes, ranks // nodes if known and ranks else 0


def _others(values: Mapping[str, Any]) -> dict[str, str]:
    """Its keys that are no shape, as they are called here."""
    precision = values.get("mixed_precision")
    taken = precision not in _NO_PRECISION
    keys = {"env.variables.ACCELERATE_MIXED_PRECISION": str(precision)} if taken else {}
    return {**keys, **({"script.accelerator": "cpu"} if values.get("use_cpu") is True else {})}


def _plugins(values: Mapping[str, Any], name: str) -> list[str]:
    given = [plugin for key, plugin in _PLUGINS.items() if values.get(key)]
    return [f"write Accelerator({it}=...) in it, with what {name} has" for it in given]


def _script_beside(path: Path) -> str:
    """The one script of its folder that speaks of accelerate; else a name for it."""
    found = []
    for file in sorted(path.parent.glob("*.py")):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found += [file] if "Accelerator(" in text else []
    return shlex.quote(str(found[0])) if len(found) == 1 else "train.py"
