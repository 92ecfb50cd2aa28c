"""What to write where the environment of a rank lacks a variable that was asked of it."""

from __future__ import annotations

import ast
import os
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType

from hpc_train.config.meant_words.launcher_variables import (
    INSTEAD,
    is_of_launcher,
    read_variable,
    written_instead,
)
from hpc_train.config.secrets import how_to_pass, looks_secret
from hpc_train.plan.shell import is_launchers
from hpc_train.training.failures.frame_text import nodes_of_file
from hpc_train.training.failures.frame_values import failing_line, value_of

# What torchrun tells its ranks by variables, and where Lightning's Trainer has the same.
_OF_TRAINER = {
    "RANK": "global_rank",
    "LOCAL_RANK": "local_rank",
    "WORLD_SIZE": "world_size",
    "LOCAL_WORLD_SIZE": "num_devices",
    "NODE_RANK": "node_rank",
    "GROUP_RANK": "node_rank",
}


def unset_variable(error: BaseException) -> str:
    """What a KeyError of `os.environ` means, or a None that it gave; empty for any other error."""
    if isinstance(error, KeyError) and _is_of_environ(error):
        return _meaning(str(error.args[0]))
    if isinstance(error, TypeError) and "NoneType" in str(error):
        frame, nodes = failing_line(error) or (None, [])
        names = [*dict.fromkeys(_given_none(nodes, frame))] if frame else []
        return f"as of {names[0]}, {_meaning(names[0])}" if names else ""
    return ""


def _meaning(name: str) -> str:
    """A variable of the launcher's is no one's to set in a config, where it would be refused."""
    attribute = _OF_TRAINER.get(name) or _OF_TRAINER.get(INSTEAD.get(name, ""))
    if attribute and INSTEAD.get(name, name) not in os.environ:
        there = f"self.trainer.{attribute}, in setup() or later (in __init__ there is no Trainer)"
        by = "torchrun" if name in _OF_TRAINER else "Slurm or MPI"
        return f"which {by} sets, and a training by Trainer does not need: write {there}"
    if is_of_launcher(name):
        return f"a variable of Slurm's or of MPI's, which is not set here: {written_instead(name)}"
    if is_launchers(name):
        return "a variable of Slurm's or the launcher's, which is not set here"
    if looks_secret(name):
        return f"a variable that is not set: {how_to_pass(name)}"
    return f"a variable that is not set: write env.variables.{name}=VALUE behind the command"


def _given_none(nodes: Sequence[ast.AST], frame: FrameType) -> Iterator[str]:
    """Variables whose value, which is none, the line that failed takes, itself or by a name."""
    for node in nodes:
        found = read_variable(node)
        if isinstance(node, ast.Name) and value_of(node, frame) is None:
            values = [
                it.value
                for it in nodes_of_file(frame)
                if isinstance(it, ast.Assign) and node.id in map(ast.unparse, it.targets)
            ]
            found = read_variable(values[0]) if len(values) == 1 else None
        if found and found[1] is None and found[0] not in os.environ:
            yield found[0]


def _is_of_environ(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename in ("<frozen os>", os.__file__)
