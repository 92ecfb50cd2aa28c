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
    if sum(it in values for it in _ITS_OWN) < _LEAST or any(it in values for it in _OURS):
        return
    words = ["hpc-train submit", *_shape(values), _script_beside(path)]
    precision = values.get("mixed_precision")
    if precision not in _NO_PRECISION:
        words.append(f"env.variables.ACCELERATE_MIXED_PRECISION={precision}")
    if values.get("use_cpu") is True:
        words.append("script.accelerator=cpu")
    plugins = [given for key, given in _PLUGINS.items() if values.get(key)]
    beside = "".join(
        f"; write Accelerator({it}=...) in it, with what {path.name} has" for it in plugins
    )
    raise ConfigError(
        f"{path}: this is a config of accelerate, and hpc-train starts the ranks itself",
        f"submit the script without it: {' '.join(words)}{beside}",
    )


def _shape(values: Mapping[str, Any]) -> list[str]:
    """`--nodes 2 --gpus 4`, as far as the file says it."""
    nodes, ranks = values.get("num_machines"), values.get("num_processes")
    nodes = nodes if type(nodes) is int and nodes > 0 else 1
    known = type(ranks) is int and ranks > 0 and ranks % nodes == 0
    return [f"--nodes {nodes}", f"--gpus {ranks // nodes if known and ranks else 'N'}"]


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
