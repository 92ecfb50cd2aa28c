"""A script that reads more words of its command line than it was given."""

from __future__ import annotations

import ast
import sys
import traceback

from hpc_train.training.failures.frame_text import nodes_at

_ARGV = ("sys.argv", "argv")


def lacking_words(error: BaseException) -> str:
    """How many it was given, and where they are typed; empty for other errors."""
    frames = [*traceback.walk_tb(error.__traceback__)] if isinstance(error, IndexError) else []
    if not frames:
        return ""
    read = [it for it in nodes_at(*frames[-1]) if isinstance(it, ast.Subscript)]
    if not any(ast.unparse(it.value) in _ARGV for it in read):
        return ""
    given = len(sys.argv) - 1
    many = f"{given or 'no'} argument{'s' if given != 1 else ''}"
    return f"the script was given {many}: they are typed behind --, as in {_own_name()} -- VALUE"


def _own_name() -> str:
    return sys.argv[0].rpartition("/")[2] if sys.argv and sys.argv[0] else "train.py"
