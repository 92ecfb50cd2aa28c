"""`sys.exit(main())` of a main() that returns its result: Python ends such a process as failed.

"Any other object is printed to sys.stderr and results in an exit code of 1" (Python's manual,
sys.exit): a training that is over counts as failed, for its last loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.scripts.script_starts import own_files

_EXITS = ("sys.exit", "exit", "quit", "SystemExit")
# What a function that trains calls its result, as the last word of the name.
_RESULT = re.compile(
    r"(?i)(?:\w*_)?(?:loss|losses|acc|accuracy|metrics?|history|results|scores?|model|net|trainer)"
)
_NUMBERS = ("float", "item")  # float(x), x.item(): of a loss
_KEEP_RESULT = re.compile(r"(?:\w+\.)*(?:record|no_grad|inference_mode|wraps)\b")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def result_exits(
    tree: ast.Module, file: Path, search_path: Sequence[str]
) -> Iterator[tuple[int, str, str]]:
    """The line of each exit with a result that is surely no exit code, what of it, what to write.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
    """
    functions = _functions(tree)
    for call in (it for it in ast.walk(tree) if isinstance(it, ast.Call)):
        given = exit_argument(call)
        if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Name):
            continue
        made = functions.get(given.func.id) or _imported(given.func.id, tree, file, search_path)
        if made is not None and (returned := _result_of(made)):
            said = f"leaves with what {given.func.id} returns ({returned}), which is no exit code"
            said += " and counts as 1: the run would end as failed"
            yield call.lineno, said, _by_itself(call, given)


def exit_argument(call: ast.Call) -> ast.expr | None:
    """What an exit is called with; None where it is none, or has nothing."""
    is_exit = ast.unparse(call.func) in _EXITS and len(call.args) == 1
    return call.args[0] if is_exit else None


def instead_of_exit(tree: ast.Module, line: int) -> str:
    """What to write where a line of a script leaves with what a call returns; else empty."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0):
            given = exit_argument(node)
            if isinstance(given, ast.Call):
                return _by_itself(node, given)
    return ""


def _by_itself(call: ast.Call, given: ast.Call) -> str:
    """What to write where a script leaves with what a call returns."""
    raising = "raise " if ast.unparse(call.func) == "SystemExit" else ""
    return f"write {ast.unparse(given)} in place of {raising}{ast.unparse(call)}"


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {it.name: it for it in tree.body if isinstance(it, ast.FunctionDef)}


def _imported(
    name: str, tree: ast.Module, file: Path, search_path: Sequence[str]
) -> ast.FunctionDef | None:
    """The function of an own module that the script imports by that name."""
    for node in (it for it in ast.walk(tree) if isinstance(it, ast.ImportFrom)):
        for it in node.names:
            if (it.asname or it.name) == name:
                stem = (node.module or "").rpartition(".")[2]
                own = own_files(ast.Module([node], []), file, search_path)
                texts = (_functions(text) for path, text in own if path.stem == stem)
                return next((of[it.name] for of in texts if it.name in of), None)
    return None


def _result_of(function: ast.FunctionDef) -> str:
    """The text of what it returns at its end, where that is no exit code; else empty."""
    if any(not _KEEP_RESULT.match(ast.unparse(it)) for it in function.decorator_list):
        return ""
    if any(isinstance(it, ast.Yield | ast.YieldFrom) for it in _own_nodes(function)):
        return ""
    last = function.body[-1]
    while isinstance(last, ast.With):
        last = last.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    return ast.unparse(value) if value is not None and _is_result(value) else ""


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Its nodes, without those of functions and classes in it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, _FUNCTIONS):
            yield from _own_nodes(node)


def _is_result(value: ast.expr) -> bool:
    if isinstance(value, ast.Dict | ast.List | ast.Tuple | ast.Set):
        return True
    if isinstance(value, ast.Constant):
        return isinstance(value.value, float)
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func).rpartition(".")[2]
        of = [*value.args, *([value.func.value] if isinstance(value.func, ast.Attribute) else [])]
        return name in _NUMBERS and len(of) == 1 and not isinstance(of[0], ast.Compare | ast.BoolOp)
    if isinstance(value, ast.Name):
        return bool(_RESULT.fullmatch(value.id))
    return False
