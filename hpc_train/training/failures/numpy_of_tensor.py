"""A function of NumPy that was given a tensor of torch's, and called the tensor's own method.

numpy.mean, max, std and their like call the method of that name of what is no array, with NumPy's
words: axis, out, ddof (numpy/_core/fromnumeric.py).
"""

from __future__ import annotations

import ast

from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of

_MOST = 40  # characters of an argument that is told


def numpy_of_tensor(error: BaseException) -> str:
    """What to write; empty where the error is of something else."""
    at = failing_line(error) if isinstance(error, TypeError) else None
    if at is None:
        return ""
    frame, nodes = at
    for call in nodes:
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        module = value_of(call.func.value, frame)
        if getattr(module, "__name__", "") != "numpy" or not call.args:
            continue
        name, given = call.func.attr, call.args[0]
        # The call has failed by NumPy's words for the method of that name.
        if not str(error).startswith(f"{name}()"):
            continue
        shown = ast.unparse(given)
        if isinstance(given, ast.Name | ast.Attribute) and shape_of(value_of(given, frame)) is None:
            continue
        shown = shown if len(shown) <= _MOST else "x"
        own = f"{shown}.{name}()"
        return f"{ast.unparse(call.func)} was given a tensor: write {own} of torch"
    return ""
