"""What to write where the environment of a rank lacks a variable that was asked of it."""

from __future__ import annotations

import os
import traceback

from hpc_train.config.secrets import how_to_pass, looks_secret
from hpc_train.plan.shell import is_launchers

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
    """What a KeyError of `os.environ` means; empty for any other error.

    A variable of the launcher's is no one's to set in a config, where it would be refused.
    """
    if not isinstance(error, KeyError) or not _is_of_environ(error):
        return ""
    name = str(error.args[0])
    if attribute := _OF_TRAINER.get(name):
        there = f"self.trainer.{attribute}, in setup() or later (in __init__ there is no Trainer)"
        return f"which torchrun sets, and a training by Trainer does not need: write {there}"
    if is_launchers(name):
        return "a variable of Slurm's or the launcher's, which is not set here"
    if looks_secret(name):
        return f"a variable that is not set: {how_to_pass(name)}"
    return f"a variable that is not set: write env.variables.{name}=VALUE behind the command"


def _is_of_environ(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename in ("<frozen os>", os.__file__)
