"""`torch.tensor([1.0, 5.0])` in a config, which YAML reads as a text: the list that it is of."""

from __future__ import annotations

import ast
from typing import Any

_MAKERS = ("tensor", "Tensor", "FloatTensor", "LongTensor", "as_tensor", "array", "asarray")
_MODULES = ("", "torch", "np", "numpy")


def list_of_tensor(text: str) -> list[Any] | None:
    """The list; None of another text."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not call.args:
            return None
        module, _, name = ast.unparse(call.func).rpartition(".")
        made = ast.literal_eval(call.args[0]) if name in _MAKERS and module in _MODULES else None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return [*made] if isinstance(made, list | tuple) else None
