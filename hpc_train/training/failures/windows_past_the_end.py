"""Windows of a series that are cut short at its end: how many whole ones there are."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
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
    if not _is_bare(returned[0].value) and not _counts_too_many(dataset, series, longest):
        return ""
    taken = longest[0] if len(longest) == 1 else f"({' + '.join(longest)})"
    place = f"{shown_file(length.__code__.co_filename)}:{first + returned[0].lineno - 1}"
    return (
        f"the last windows go past the end of {series}: write"
        f" return len({series}) - {taken} + 1 ({place})"
    )


def _counted(value: ast.expr | None) -> str:
    """`self.series` of `len(self.series)`, also where something is taken off it."""
    while isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Sub, ast.Add)):
        value = value.left
    return ast.unparse(value.args[0]) if _is_bare(value) and isinstance(value, ast.Call) else ""


def _is_bare(value: ast.expr | None) -> bool:
    is_len = isinstance(value, ast.Call) and ast.unparse(value.func) == "len"
    return is_len and isinstance(value, ast.Call) and len(value.args) == 1


def _counts_too_many(dataset: Any, series: str, reach: Sequence[str]) -> bool:
    """Whether the set says more samples than there are whole windows, by its own numbers."""
    try:
        last = len(_of_self(dataset, series)) - sum(_of_self(dataset, it) for it in reach)
        return bool(len(dataset) > last + 1)
    except (AttributeError, TypeError, ValueError):  # another kind of number than is meant here
        return False


def _of_self(dataset: Any, written: str) -> Any:
    """The value of `self.window`, or of a number; a ValueError for other terms."""
    found = re.fullmatch(r"self\.(\w+)", written)
    return getattr(dataset, found[1]) if found else int(written)


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
