"""Calls that wait for somebody at a terminal, which a job has not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hpc_train.config.python_text.harmless_code import imported_names
from hpc_train.config.scripts.fixed_ranks import surely_run

TELLS = "a job has no terminal to type at, and ends there"
_DEBUGGERS = ("pdb", "ipdb", "pudb", "IPython.core.debugger")
_STOPS = (
    *("breakpoint", "torch.distributed.breakpoint"),
    *(f"{it}.set_trace" for it in _DEBUGGERS),
)
_READS = "input"  # of Python's own; a script may call so what it gives a model


def terminal_stops(tree: ast.Module, body: ast.AST | None = None) -> Iterator[tuple[int, str]]:
    """The line of each such call, and how it is written.

    Args:
        tree: Whose imports count.
        body: Where they are looked for; None for all of the tree that stands under no condition.
    """
    names = imported_names(tree)
    for call in ast.walk(body) if body is not None else surely_run(tree):
        if not isinstance(call, ast.Call):
            continue
        written = ast.unparse(call.func)
        first, dot, rest = written.partition(".")
        meant = f"{names.get(first, first)}{dot}{rest}"
        if meant in _STOPS or (meant == _READS and _is_pythons_own(tree)):
            yield call.lineno, f"{written}()"


def _is_pythons_own(tree: ast.Module) -> bool:
    """Whether `input` is no name of the module's own."""
    for node in ast.walk(tree):
        bound = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
        if isinstance(node, ast.arg | ast.alias):
            bound = node.arg if isinstance(node, ast.arg) else node.asname or node.name
        if (bound or getattr(node, "name", "")) == _READS:
            return False
    return True
