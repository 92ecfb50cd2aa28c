"""A line that asks a terminal for its size, in a rank, which has none."""

from __future__ import annotations

import ast
from subprocess import CalledProcessError

from hpc_train.config.python_text.harmless_code import imported_names
from hpc_train.config.python_text.terminal_sizes import size_asked
from hpc_train.training.failures.frame_text import nodes_of_file
from hpc_train.training.failures.frame_values import failing_line


def absent_terminal(error: BaseException) -> str:
    """What to write there; empty where the line asks for something else."""
    found = failing_line(error)
    if found is None or not isinstance(
        error, OSError | ValueError | IndexError | CalledProcessError
    ):
        return ""
    frame, nodes = found
    module = next(nodes_of_file(frame), None)
    names = imported_names(module) if isinstance(module, ast.Module) else {}
    lines = (it for it in nodes if isinstance(it, ast.stmt) and not hasattr(it, "body"))
    told = filter(None, (size_asked(it, names) for it in lines))
    return next((f"a job has no terminal: {write}" for _, write in told), "")
