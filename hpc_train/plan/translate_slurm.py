"""Options of sbatch, srun and salloc as keys of the config. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpc_train.config.keys import MEMORY_KEYS
from hpc_train.config.meant_words.sbatch_names import KNOWN, OWNED, PASSED_ON, SHORT, SWITCHES
from hpc_train.config.words import did_you_mean
from hpc_train.plan.translate_folders import LEFT_OUT
from hpc_train.plan.translation import Translation

_COUNTED = {
    "nodes": "nodes",
    "ntasks": "tasks",
    "ntasks-per-node": "tasks_per_node",
    "gpus": "all_gpus",
    "gpus-per-node": "gpus",
}
_KEYS = {
    "cpus-per-task": "slurm.cpus_per_gpu",
    "cpus-per-gpu": "slurm.cpus_per_gpu",
    "job-name": "name",
    "time": "slurm.time",
    **{name.replace("_", "-"): f"slurm.{name}" for name in PASSED_ON},
}
# srun's own, which sbatch does not know.
_OF_SRUN = ("kill-on-bad-exit", "label", "mpi", "unbuffered", "cpu-bind", "pty", "overlap", "jobid")


_OF_GPUS = re.compile(r"gpu|tres")  # gpus-per-node, mem-per-gpu, tres-per-task
_GPU_GRES = re.compile(r"gpu|mps|shard")  # gres.conf(5): mps and shard are parts of a GPU


def key_of_option(name: str) -> str:
    """The key of the config for an option of sbatch, by its long name; empty where it has none."""
    if name in ("gres", "gpus", "gpus-per-node", "gpus-per-task", "ntasks-per-node"):
        return "slurm.gpus_per_node"
    key = name.replace("-", "_")
    return _KEYS.get(name, f"slurm.{key}" if key in ("nodes", "exclusive", *MEMORY_KEYS) else "")


def read_slurm_options(words: list[str], made: Translation) -> list[str]:
    """Apply the options in front of a command, and return the command."""
    options, rest = options_in_front(words)
    for word, name, value in options:
        _option(word, name, value, made)
    return rest


def options_in_front(words: Sequence[str]) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Each option in front of a command, its long name and its value; and the command."""
    options, words = list[tuple[str, str, str]](), [*words]
    while words and words[0].startswith("-") and words[0] != "-":
        typed, has_value, value = words[0].partition("=")
        words = words[1:]
        name = typed.lstrip("-")
        if not typed.startswith("--"):  # -N2, -N 2
            name, glued = SHORT.get(typed[1:2], typed[1:2]), typed[2:]
            value, has_value = (glued, "=") if glued else (value, has_value)
            typed = typed[:2]
        if not has_value and name not in SWITCHES and words:
            value, words = words[0], words[1:]
        options.append((f"{typed}={value}" if value else typed, name, value))
    return options, words


def _option(word: str, name: str, value: str, made: Translation) -> None:
    key = name.replace("-", "_")
    made.asks_gpus |= bool(_OF_GPUS.search(name) or (name == "gres" and _GPU_GRES.search(value)))
    if name in ("gres", "gpus", "gpus-per-node", "gpus-per-task") and not value.isdigit():
        _gpus(word, name, value, made)
    elif name in _COUNTED:
        made.number(word, _COUNTED[name], value.partition("-")[0])
    elif name == "cpus-per-task" and value.isdigit():
        made.cpus(word, int(value))
    elif name in _KEYS:
        whole = name.startswith("cpus") and value.isdigit()
        made.key(word, _KEYS[name], int(value) if whole else value)
    elif key in MEMORY_KEYS:  # without a unit it is MB to sbatch(1), --mem
        made.key(word, f"slurm.{key}", f"{value}M" if value.isdigit() and value != "0" else value)
    elif name in ("requeue", "no-requeue"):
        made.key(word, "requeue.enabled", name == "requeue")
    elif name == "signal" and (lead := re.search(r"@(\d+)\Z", value)):
        made.key(word, "slurm.signal_lead_s", int(lead[1]), "hpc-train handles the signal")
    elif name == "array":
        made.array.take(word, value)
    elif name == "wrap":
        made.wrapped = value
    else:
        _rest(word, name, value, made)


def _rest(word: str, name: str, value: str, made: Translation) -> None:
    if name == "exclusive":
        made.key(word, "slurm.exclusive", value or True)
    elif name == "gpus-per-task":
        made.say(word, "left out: each rank has a GPU of its own")
    elif name in _OF_SRUN:
        made.say(word, "left out: hpc-train starts the ranks' step itself")
    elif name == "chdir":
        made.folders.enter(word, value)
        made.say(word, LEFT_OUT)
    elif name in OWNED:
        made.say(word, f"left out: {OWNED[name]}")
    elif name in KNOWN:
        made.key(word, f"slurm.extra.{name}", value or True)
    else:
        meant = did_you_mean(name, KNOWN, prefix="--")
        made.refuse(word, f"is no option of sbatch that is known. {meant}".strip())


def _gpus(word: str, name: str, value: str, made: Translation) -> None:
    """`gpu:4`, `gpu:a100:4` and `a100:4`; anything else of --gres goes to sbatch as it is."""
    found = re.fullmatch(r"(?:gpu:)?(?:([A-Za-z]\w*):)?(\d+)", value)
    if found is None or (name == "gres" and not value.startswith("gpu")):
        made.key(word, f"slurm.extra.{name}", value)
        return
    kind, count = found.groups()
    if kind and kind != "gpu":
        made.key(word, "slurm.gpu_type", kind)
    if name != "gpus-per-task":
        made.number(word, "all_gpus" if name == "gpus" else "gpus", count)
