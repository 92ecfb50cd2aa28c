"""Lines that ask a terminal for its size, which a job has not, and end there.

`os.get_terminal_size` raises OSError where its file is no terminal, and `shutil.get_terminal_size`
gives 80 columns instead (Python's manual, os and shutil, "Querying the size of a terminal").
`stty size` writes nothing, and its rows and columns are taken from no words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.config.python_text.harmless_code import imported_names, is_of_main
from hpc_train.config.scripts.script_starts import own_files
from hpc_train.config.scripts.written_commands import CALLS, written_command

TELLS = "which a job has not"
_OF_OS = "os.get_terminal_size"
_SIZE = "shutil.get_terminal_size()"
_PARTS = ("lines", "columns")  # in the order of stty's
_STTY = re.compile(r"\s*stty\s+(?:-F\s*\S+\s+)?size\b[^|;&]*")
_RAISES = ("subprocess.check_output", "subprocess.check_call")
# What may not be reached, or is caught.
_CONDITIONS = (ast.If, ast.IfExp, ast.Try, ast.Match, ast.While, ast.For, ast.BoolOp)
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def terminal_sizes(
    tree: ast.Module, file: Path, search_path: Sequence[str]
) -> Iterator[tuple[Path, int, str, str]]:
    """Of the script and what it imports: the file, the line, what it asks, and what to write.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
    """
    for of, text in ((file, tree), *own_files(tree, file, search_path)):
        names = imported_names(text)
        for statement in _surely_run(text.body, is_script=of is file):
            if told := size_asked(statement, names):
                yield of, statement.lineno, *told


def size_asked(statement: ast.stmt, names: Mapping[str, str]) -> tuple[str, str] | None:
    """What a line asks a terminal, and what to write there; None where it may go on without one.

    Args:
        statement: With no statements in it.
        names: What the names of its module mean.
    """
    for node in _parts(statement):
        if not isinstance(node, ast.Call):
            continue
        written = ast.unparse(node.func)
        first, dot, rest = written.partition(".")
        meant = f"{names.get(first, first)}{dot}{rest}"
        if meant == _OF_OS:
            return f"{written}()", f"write {_SIZE} for it, and import shutil"
        if CALLS.fullmatch(meant) and node.args and _is_stty(node.args[0]):
            write = _in_its_place(statement)
            if write or meant in _RAISES:
                return "stty size", f"write {write or _SIZE}, and import shutil"
    return None


def _surely_run(body: Sequence[ast.stmt], *, is_script: bool) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.With) or (is_script and is_of_main(statement)):
            yield from _surely_run(getattr(statement, "body", []), is_script=is_script)
        elif isinstance(statement, ast.Return | ast.Raise):
            return
        elif not isinstance(statement, (*_CONDITIONS, *_LATER)):
            yield statement


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*_CONDITIONS, *_LATER)):
            yield from _parts(child)


def _is_stty(command: ast.expr) -> bool:
    written = written_command(command)
    return _STTY.fullmatch(written if isinstance(written, str) else " ".join(written)) is not None


def _in_its_place(statement: ast.stmt) -> str:
    """Of `_, width = os.popen("stty size").read().split()`, or of one of its two words."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    if isinstance(target, ast.Tuple | ast.List):
        if len(target.elts) != len(_PARTS) or not all(
            isinstance(it, ast.Name) for it in target.elts
        ):
            return ""
        names = [ast.unparse(it) for it in target.elts]
        used = [(name, part) for name, part in zip(names, _PARTS, strict=True) if name != "_"]
        if len(used) == len(_PARTS):
            return f"{names[1]}, {names[0]} = {_SIZE}"
        return "; ".join(f"{name} = {_SIZE}.{part}" for name, part in used)
    for it in ast.walk(statement.value):
        index = it.slice if isinstance(it, ast.Subscript) else None
        if isinstance(index, ast.Constant) and index.value in (0, 1):
            return f"{ast.unparse(target)} = {_SIZE}.{_PARTS[bool(index.value)]}"
    return ""
