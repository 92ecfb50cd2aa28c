"""A file that is to be written into a folder that is not there: what makes the folder."""

from __future__ import annotations

import ast
import linecache
import os
import re
import traceback
from pathlib import Path

from hpc_train.training.failures.frame_text import is_users, nodes_at

# torch/csrc, inline_container.cc; and pandas, io/common.py.
_SAID = re.compile(
    r"Parent directory (?P<torch>.{1,300}) does not exist"
    r"|non-existent directory: '(?P<pandas>[^']{1,300})'"
)
_WRITES = re.compile(
    r"\b(?:save\w*|dump|write\w*|to_(?:csv|json|parquet|pickle|excel))\("
    r"|,\s*(?:mode=)?['\"][wax]b?\+?['\"]"
)


def absent_folder(error: BaseException) -> str:
    """`there is no folder /x/out: write os.makedirs("out", ...) ...`; empty for other errors."""
    if not isinstance(error, RuntimeError | OSError):
        return ""
    found = _SAID.search(str(error))
    folder = (found["torch"] or found["pandas"]) if found else _written_into(error)
    if not folder or Path(folder).exists():
        return ""
    there = f"there is no folder {Path.cwd() / folder}"
    return f"{there}: write {_made_by(error, folder)} in front of that line"


def _made_by(error: BaseException, folder: str) -> str:
    """The line that makes it, by what the file of the user's has imported."""
    frames = [*traceback.walk_tb(error.__traceback__)]
    own = [it for it in frames if is_users(it[0].f_code.co_filename)]
    names = own[-1][0].f_globals if own else {}
    makes = f'os.makedirs("{folder}", exist_ok=True)'
    if names.get("os") is os or not own:
        return makes
    if names.get("Path") is Path:
        frame, line = own[-1]
        called = [it for it in nodes_at(frame, line) if isinstance(it, ast.Call)]
        paths = {ast.unparse(it) for it in called if ast.unparse(it.func) == "Path"}
        path = f"{paths.pop()}.parent" if len(paths) == 1 else f'Path("{folder}")'
        return f"{path}.mkdir(parents=True, exist_ok=True)"
    return f"import os, and {makes},"


def _written_into(error: BaseException) -> str:
    """The folder of a file that a line of the user's writes; empty where it may be read."""
    path = error.filename if isinstance(error, FileNotFoundError) else None
    if not isinstance(path, str) or path.startswith("~"):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [it for it in frames if is_users(it.filename)]
    line = linecache.getline(own[-1].filename, own[-1].lineno or 0) if own else ""
    return str(Path(path).parent) if _WRITES.search(line) else ""
