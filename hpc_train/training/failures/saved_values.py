"""`self.save_hyperparameters(hidden, lr)`, which takes names and was given values.

Its `args` are a "single object of `dict`, `NameSpace` or `OmegaConf` or string names or arguments
from class `__init__`" (pytorch_lightning/core/mixins/hparams_mixin.py): values of another kind are
left out without a word.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.layers import owners
from hpc_train.training.failures.users_method import lines_of, own_method, parsed

_SAVES = "self.save_hyperparameters"


def saved_values(frames: Sequence[FrameType]) -> str:
    """What to write in the call's place; empty where the owner's `__init__` has no such call."""
    for owner in owners(frames):
        made = own_method(owner, "__init__")
        lines, first = lines_of(made)
        tree = parsed(lines)
        for call in ast.walk(tree) if tree else ():
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != _SAVES:
                continue
            names = [it.id for it in call.args if isinstance(it, ast.Name)]
            if names and len(names) == len(call.args):
                place = f"{shown_file(made.__code__.co_filename)}:{first + call.lineno - 1}"
                quoted = ", ".join(f'"{it}"' for it in names)
                given = f"{_SAVES}({', '.join(names)}) ({place}) is given values, and takes names"
                return f"{given}: write {_SAVES}(), for all, or {_SAVES}({quoted})"
    return ""
