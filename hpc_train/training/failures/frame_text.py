"""What the text says that a frame of a traceback runs."""

from __future__ import annotations

import ast
import linecache
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import hpc_train

INSTALLED = ("site-packages", "dist-packages")
PACKAGE = Path(hpc_train.__file__).parent
# In the text of a data worker's error, which torch raises anew (torch/_utils.py, ExceptionWrapper):
# its frames are those of who asked for the batch, and the worker's stand in the text.
IN_WORKER = "Original Traceback (most recent call last)"
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+), in (\w+)', re.MULTILINE)
EXAMPLES = PACKAGE / "examples"  # they count as the user's


def is_users(file: str) -> bool:
    """Whether a frame's file is outside the standard library, installed packages and hpc_train."""
    path = Path(file)
    if file.startswith("<") or path.is_relative_to(sysconfig.get_path("stdlib")):
        return False
    if any(part in INSTALLED for part in path.parts):
        return False
    return path.is_relative_to(EXAMPLES) or not path.is_relative_to(PACKAGE)


def frames_in(text: str) -> list[tuple[str, int, str]]:
    """The file, the line and the function of each frame that a printed traceback has."""
    return [(file, int(line), function) for file, line, function in _FRAME.findall(text)]


def nodes_of_file(frame: FrameType) -> Iterator[ast.AST]:
    """All of the file that its code is in; nothing where the text does not tell."""
    yield from nodes_in_file(frame.f_code.co_filename)


def nodes_in_file(file: str) -> Iterator[ast.AST]:
    """All that a file's text does; nothing where it does not tell."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):  # a notebook's cell with a magic, or a file that has changed
        return
    yield from ast.walk(tree)


def nodes_of(frame: FrameType) -> Iterator[ast.AST]:
    """All that its function does, or its module; nothing where the text does not tell."""
    code = frame.f_code
    if code.co_name == "<module>":
        yield from nodes_of_file(frame)
        return
    for node in nodes_of_file(frame):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([it.lineno for it in node.decorator_list], default=node.lineno)
            if code.co_firstlineno in (first, node.lineno):
                yield from ast.walk(node)
        elif isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            yield from ast.walk(node)


def nodes_at(frame: FrameType, line: int) -> Iterator[ast.AST]:
    """Those of them that have this line."""
    yield from (node for node in nodes_of(frame) if is_at(node, line))


def is_at(node: ast.AST, line: int) -> bool:
    """Whether a part of a text has this line."""
    first = getattr(node, "lineno", None)
    return first is not None and first <= line <= (getattr(node, "end_lineno", None) or first)


def shown_file(file: str) -> str:
    """A file as seen from the folder of the training."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def shown_class(kind: type) -> str:
    """A class as a config names it; of the script that runs without its module."""
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("__main__.")
