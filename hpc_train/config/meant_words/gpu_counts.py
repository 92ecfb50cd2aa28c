"""What to write for a number of GPUs that is typed with its type, as Slurm's options have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpc_train.config.words import EVERY

_BY_TYPE = re.compile(r"(?:gpu:)?(?:([A-Za-z]\w*):)?(\d+)")


def gpus_by_type(typed: str) -> tuple[str, str]:
    """The number and the type of `a100:2`, `gpu:a100:2` and `gpu:2`; empty for other texts."""
    found = _BY_TYPE.fullmatch(typed)
    return (found[2], found[1] or "") if found else ("", "")


OF_ALL_NODES = ("gpus", "ntasks")
_GRES_OF_GPUS = re.compile(r"gpu(?::(?!\d+\Z)([\w.-]+?))?(?::(\d+))?")  # slurm.conf(5), Gres
_OTHER_GRES = re.compile(r"(?!gpu\b)[A-Za-z]\w*(?::[\w.-]+)*")


def keys_for_gres(value: object, *, on_line: bool) -> str:
    """`write slurm.gpus_per_node: 2` for `gpu:2`, and the rest of such a list under `extra`.

    Args:
        value: As it was written; empty where it has a form of which nothing is sure.
        on_line: Whether it stands on the command line, and in no file.
    """
    count, kind, others = gpus_of_gres(value)
    sign = "=" if on_line else ": "
    words = [f"slurm.gpus_per_node{sign}{count}"] if count else []
    words += [f"slurm.gpu_type{sign}{kind}"] if kind else []
    if others:
        extra = f"slurm.extra.gres={others}" if on_line else f"slurm.extra: {{gres: '{others}'}}"
        words.append(extra)
    return f"write {(' ' if on_line else ' and ').join(words)}" if words else ""


def gpus_of_gres(value: object) -> tuple[str, str, str]:
    """The number of GPUs of a node, their type, and what else a --gres asks for; each may be empty.

    All three are, where it names several types of GPUs, or has another form.
    """
    parts = [it.strip() for it in str(value or "").removeprefix("gres:").split(",")]
    gpus = [found for it in parts if (found := _GRES_OF_GPUS.fullmatch(it))]
    others = [it for it in parts if not _GRES_OF_GPUS.fullmatch(it)]
    if len(gpus) > 1 or not all(map(_OTHER_GRES.fullmatch, others)):
        return "", "", ""
    count, kind = (gpus[0][2] or "1", gpus[0][1] or "") if gpus else ("", "")
    return count, kind, ",".join(others)


def keys_for_count(name: str, key: str, section: Mapping[str, Any], *, on_line: bool) -> str:
    """The key in place of one of sbatch's, with the number that it has; empty where none is sure.

    Args:
        name: The option, as `gpus` or `cpus_per_task`. Of `gpus` and `ntasks` the number is that
            of all nodes (sbatch(1), --gpus and --ntasks).
        key: The key, of a node or of a GPU.
        section: All of `slurm`.
        on_line: Whether it stands on the command line, and in no file.
    """
    written, nodes = section.get(name), section.get("nodes", 1)
    count, kind = gpus_by_type(str(written)) if name == "gpus" else (str(written), "")
    is_whole = isinstance(nodes, int) and nodes > 0 and count.isdecimal() and int(count) > 0
    if not is_whole or isinstance(written, bool):
        return ""
    number, sign = int(count), "=" if on_line else ": "
    said = " (of each node: a rank a GPU)" if name == "ntasks" else ""
    if name in OF_ALL_NODES and nodes > 1:
        if number % nodes:
            each = f"{number} over {nodes} nodes leave a rest, and each node has as many"
            return f"write {key}, of each node: {each}"
        number, said = number // nodes, f" (of each node; {name} of sbatch counts all {nodes})"
    words = [f"{key}{sign}{number}", *([f"slurm.gpu_type{sign}{kind}"] if kind else [])]
    return f"write {(' ' if on_line else ' and ').join(words)}{said}"


def option_for_gpus(typed: str) -> str:
    """`write --gpus 2 slurm.gpu_type=a100` for `a100:2`; empty for a text of another form."""
    count, kind = gpus_by_type(typed)
    return f"write --gpus {count}{f' slurm.gpu_type={kind}' if kind else ''}" if count else ""


def hint_of_gpus(typed: str, hint: str, *, on_line: bool) -> str:
    """What to write for `slurm.gpus_per_node`.

    Args:
        hint: What is said of any number.
        on_line: Whether it stands on the command line, and in no file.
    """
    count, kind = gpus_by_type(typed)
    if not count:
        return f"{hint}: how many GPUs of each node are used" if typed in EVERY else hint
    sign = "=" if on_line else ": "
    words = [
        f"slurm.gpus_per_node{sign}{count}",
        *([f"slurm.gpu_type{sign}{kind}"] if kind else []),
    ]
    return f"write {(' ' if on_line else ' and ').join(words)}"
