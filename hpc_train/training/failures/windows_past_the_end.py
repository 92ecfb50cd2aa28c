"""Windows of a series that are cut short at its end: how many whole ones there are."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.users_method import lines_of, own_method, parsed


def whole_windows(dataset: Any) -> str:
    """What `__len__` has to return; empty where it counts otherwise, or no item is a window."""
    length, item = (own_method(dataset, it) for it in ("__len__", "__getitem__"))
    (lines, first), (of_item, _) = lines_of(length), lines_of(item)
    counts, takes = parsed(lines), parsed(of_item)
    if counts is None or takes is None or not inspect.isfunction(length):
        return ""
    returned = [it for it in ast.walk(counts) if isinstance(it, ast.Return)]
    series = _counted(returned[0].value) if len(returned) == 1 else ""
    names = [it.arg for it in takes.args.args]
    index = names[1] if len(names) == 2 else ""
    reaches = [*_reaches(takes, series, index)] if series and index else []
    if not reaches:
        return ""
    longest = max(reaches, key=len)
    taken = longest[0] if len(longest) == 1 else f"({' + '.join(longest)})"
    place = f"{shown_file(length.__code__.co_filename)}:{first + returned[0].lineno - 1}"
    return (
        f"the last windows go past the end of {series}: write"
        f" return len({series}) - {taken} + 1 ({place})"
    )


def _counted(value: ast.expr | None) -> str:
    """`self.series` of `len(self.series)`."""
    is_len = isinstance(value, ast.Call) and ast.unparse(value.func) == "len"
    return ast.unparse(value.args[0]) if is_len and isinstance(value, ast.Call) else ""


def _reaches(method: ast.FunctionDef, series: str, index: str) -> Iterator[list[str]]:
    """What is added to the index at the upper end of each slice of the series."""
    for node in ast.walk(method):
        if not isinstance(node, ast.Subscript) or ast.unparse(node.value) != series:
            continue
        part = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        if isinstance(part, ast.Slice) and part.upper is not None and part.step is None:
            terms = _terms(part.upper)
            if terms.count(index) == 1 and len(terms) > 1:
                terms.remove(index)
                yield terms


def _terms(sum_of: ast.expr) -> list[str]:
    if isinstance(sum_of, ast.BinOp) and isinstance(sum_of.op, ast.Add):
        return [*_terms(sum_of.left), *_terms(sum_of.right)]
    return [ast.unparse(sum_of)]
