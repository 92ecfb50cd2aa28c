"""What to write for a number of GPUs that is typed with its type, as Slurm's options have it."""

from __future__ import annotations

import re

from hpc_train.config.words import EVERY

_BY_TYPE = re.compile(r"(?:gpu:)?(?:([A-Za-z]\w*):)?(\d+)")


def gpus_by_type(typed: str) -> tuple[str, str]:
    """The number and the type of `a100:2`, `gpu:a100:2` and `gpu:2`; empty for other texts."""
    found = _BY_TYPE.fullmatch(typed)
    return (found[2], found[1] or "") if found else ("", "")


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
