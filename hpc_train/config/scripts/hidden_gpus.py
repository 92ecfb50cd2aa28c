"""A script that lets each of its ranks see the same few GPUs, by CUDA_VISIBLE_DEVICES.

CUDA numbers what the variable names anew from 0 (CUDA's manual, "CUDA Environment Variables"):
where that is one GPU, all ranks of a node share it, which NCCL refuses, or there is no second.
"""

from __future__ import annotations

import ast

from hpc_train.config.meant_words.launcher_variables import ENVIRON
from hpc_train.config.scripts.script_call_arguments import sure_nodes

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_LEAVE_OUT = "leave that line out: the job gives each rank its GPU"


def hidden_gpus(tree: ast.Module, *, ranks: int) -> tuple[int, str, str] | None:
    """The line that surely sets it for too few, what is wrong with it, and what to write.

    Args:
        ranks: On each node.
    """
    if ranks < 2:
        return None
    nodes = [*ast.walk(tree)]
    named = [it for it in nodes if isinstance(it, ast.Constant) and it.value == _VISIBLE]
    words = {it.arg for it in nodes if isinstance(it, ast.keyword)}
    if len(named) != 1 or _VISIBLE in words:  # another line of it may come first, or after
        return None
    for it in sure_nodes(tree):
        gpus = _visible(it) if isinstance(it, ast.Assign) else []
        if isinstance(it, ast.Assign) and 0 < len(gpus) < ranks:
            seen = f"GPU {gpus[0]} alone" if len(gpus) == 1 else f"{len(gpus)} GPUs"
            said = f"sets {_VISIBLE} to {','.join(gpus)}, so that all {ranks} ranks of a node see"
            return it.lineno, f"{said} {seen}", _LEAVE_OUT
    return None


def _visible(statement: ast.Assign) -> list[str]:
    """The GPUs that it leaves; none where it hides all, or the text does not tell."""
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Subscript) or ast.unparse(target.value) not in ENVIRON:
        return []
    is_it = isinstance(target.slice, ast.Constant) and target.slice.value == _VISIBLE
    if not is_it or not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        return []
    gpus = [it.strip() for it in value.value.split(",")]
    return gpus if all(it and not it.startswith("-") for it in gpus) else []
