"""`self.hparams = args`: a property of Lightning's that an `__init__` assigns."""

from __future__ import annotations

import ast
import re
import traceback

from hpc_train.config.fit.assigned_properties import instead_of_assigning
from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.training.failures.frame_text import is_users, nodes_at

# Python 3.10 says it otherwise.
_NO_SETTER = re.compile(
    r"property '?(?P<a>\w+)'? of .* has no setter|can't set attribute '(?P<b>\w+)'"
)


def assigned_name(error: BaseException) -> str:
    """What to write in the place of that line; empty where it is another class's property."""
    found = _NO_SETTER.search(str(error)) if isinstance(error, AttributeError) else None
    if found is None:
        return ""
    name = found["a"] or found["b"]
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        if not is_users(frame.f_code.co_filename):
            continue
        kinds = type(frame.f_locals.get("self")).__mro__
        if not any(name in vars(it) and is_lightnings(it.__module__) for it in kinds):
            return ""
        for node in nodes_at(frame, line):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == f"self.{name}":
                return instead_of_assigning(name, node.value)
        return ""
    return ""
