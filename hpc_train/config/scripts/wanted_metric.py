"""The metric that a callback of a script most likely waits for: of what its modules log."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.python_text.modules import find_module

_LOGS = re.compile(r"self\.log\(\s*[\"']([\w/.-]+)[\"']")
_FIRST = ("val_loss", "val/loss", "valid_loss")


def wanted_metric(tree: ast.Module, search_path: Sequence[str]) -> str:
    """`val_loss`, else what is logged of a validation, else of a training; `...` if nothing is.

    Args:
        tree: The script.
        search_path: As `sys.path`, with the script's folder first.
    """
    logged = _logged(ast.unparse(tree))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            logged += _logged(_text_of(node.module, search_path))
    order = [*_FIRST, *(it for it in logged if it.startswith("val")), *logged]
    return next((it for it in order if it in logged), "...")


def _text_of(module: str, search_path: Sequence[str]) -> str:
    found, rest = find_module(module, search_path[:1])
    file = found.file if found and not rest else None
    is_own = file is not None and file.is_relative_to(Path(search_path[0]))
    return file.read_text("utf-8", "replace") if file is not None and is_own else ""


def _logged(text: str) -> list[str]:
    return [str(it) for it in _LOGS.findall(text)]
