"""A training_step that leaves a batch out by returning None, which no rank of several may do.

Source: pytorch_lightning/loops/optimization/automatic.py. With one rank Lightning skips the batch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from hpc_train.config.fit.refused_callbacks import with_bases
from hpc_train.config.python_text.class_kind import locate, method_of, place_of
from hpc_train.config.python_text.method_signatures import gives_value, own_nodes

_STEP, _BY_HAND = "training_step", "automatic_optimization"
# A condition that may be meant for one rank alone.
_OF_RANKS = re.compile(r"world_size|num_devices|num_nodes|is_initialized")
# One for a loss of which nothing can be made by multiplying it.
_NOT_FINITE = re.compile(r"isnan|isfinite|isinf|nan_to_num")
WHY = "returns None: with several ranks no rank may leave a batch out"


def skipped_batches(class_path: str, ranks: int, path: Sequence[str]) -> Iterator[str]:
    """A line for each, with its place, what is wrong with it, and what to write.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    found = method_of(class_path, _STEP, path) if ranks > 1 else None
    left_out = blank_returns(found[1]) if found is not None else []
    if found is None or not left_out:
        return
    bases = with_bases(locate(class_path, path), path)
    texts = [ast.unparse(it.definition) for it in bases if it.definition and _is_users(it.module)]
    if any(_BY_HAND in it for it in texts):
        return
    for line, hint in left_out:
        yield f"{place_of(found[0], line, path)} {WHY}; {hint}"


def blank_returns(step: ast.FunctionDef) -> list[tuple[int, str]]:
    """The line of each return without a loss, where others have one, and what to write."""
    nodes = [*own_nodes(step.body)]
    if step.decorator_list or gives_value(step) is not True:
        return []
    if any(isinstance(it, ast.Yield | ast.YieldFrom | ast.Await) for it in nodes):
        return []
    return [
        (it.lineno, hint_for(tests))
        for it, tests in _returns(step.body, "")
        if _may_be_none(it) and not _OF_RANKS.search(tests)
    ]


def hint_for(tests: str) -> str:
    """What to write for a batch that is left out under these conditions."""
    hint = "leave such samples out in the data set"
    if _NOT_FINITE.search(tests):
        return hint
    return f"{hint}, or compute the loss of that batch as well and write `return loss * 0`"


def _returns(body: Sequence[ast.stmt], tests: str) -> Iterator[tuple[ast.Return, str]]:
    """Each return of these lines, with the conditions that it stands under."""
    for statement in body:
        if isinstance(statement, ast.Return):
            value = statement.value
            own = ast.unparse(value.test) if isinstance(value, ast.IfExp) else ""
            yield statement, f"{tests} {own}"
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            test = getattr(statement, "test", None)
            under = f"{tests} {ast.unparse(test)}" if test is not None else tests
            for inner in _bodies(statement):
                yield from _returns(inner, under)


def _bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _may_be_none(statement: ast.Return) -> bool:
    value = statement.value
    if isinstance(value, ast.IfExp):
        return any(isinstance(it, ast.Constant) and it.value is None for it in _ends(value))
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _ends(value: ast.IfExp) -> tuple[ast.expr, ast.expr]:
    return value.body, value.orelse


def _is_users(module: str) -> bool:
    return not module.startswith(("pytorch_lightning", "lightning", "torch"))
