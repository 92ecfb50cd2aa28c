"""A script's text as a tree, for those who only look something up in it."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache
from pathlib import Path


def script_tree(file: Path) -> ast.Module | None:
    """None where it cannot be read, or is no Python: that is told where the script is checked.

    All who ask for the same text get the same tree, and change nothing in it.
    """
    try:
        return _parsed(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


@lru_cache(maxsize=8)
def _parsed(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the script's own business
        return ast.parse(source)
