"""A module of the user's that starts or awaits a training as it is imported, which each rank does.

`hpc_train.run_here(...)` at the end of the file that holds the model: the training that it starts
imports that file, too, and would start another one. Told from the text where that is sure;
`calls_on_import` refuses the call itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hpc_train.config.calls_on_import import FUNCTIONS, OF_RUNS, refused_on_import
from hpc_train.config.python_text.harmless_code import is_of_main
from hpc_train.config.python_text.script_tree import script_tree


def check_submits_nothing(files: Iterable[Path]) -> None:
    """Refuse a module that surely starts or awaits a training as it is imported.

    Args:
        files: Of the user's, which the ranks import.

    Raises:
        ConfigError: with `FILE:LINE`.
    """
    for file in sorted(files):
        tree = script_tree(file) if b"hpc_train" in file.read_bytes() else None
        for line, shown in _started(tree) if tree is not None else ():
            raise refused_on_import(f"{file}:{line}", shown)


def _started(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the text of each such call that each import comes to."""
    from hpc_train.config.scripts.script_call_arguments import sure_calls

    names = dict(_imported(tree))
    imported = ast.Module([it for it in tree.body if not is_of_main(it)], [])
    for call in sure_calls(imported):
        if _starts(call, names):
            yield call.lineno, f"{ast.unparse(call.func)}(...)"


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What each name means that an import binds, also within a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((it.asname or it.name, f"{node.module}.{it.name}") for it in node.names)
        elif isinstance(node, ast.Import):
            for it in node.names:
                first = it.name.partition(".")[0]
                yield (it.asname, it.name) if it.asname else (first, first)


def _starts(call: ast.Call, names: Mapping[str, str]) -> bool:
    word, dot, rest = ast.unparse(call.func).partition(".")
    called = f"{names.get(word, '')}{dot}{rest}"
    if not called.startswith("hpc_train."):
        return False
    last = called.rpartition(".")[2]
    if ".Run." in called:  # of what Run.find("latest") gives
        return last in OF_RUNS
    return "(" not in called and last in FUNCTIONS
