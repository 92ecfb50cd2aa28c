"""Columns of a pandas table that hold no numbers, where the whole of it was to become a tensor."""

from __future__ import annotations

import ast
from typing import Any

from hpc_train.training.failures.frame_values import failing_line, value_of
from hpc_train.training.failures.table_keys import is_table

_SAID = ("numpy.object_", "could not convert string to float")
_NUMBERS = "biufc"  # kinds of dtypes: bool, int, unsigned, float, complex
_TIMES = "mM"
_MOST_NAMES, _MOST_SHOWN = 5, 30


def text_columns(error: BaseException) -> str:
    """Which they are, and what to write; empty where the line has no such table."""
    line = failing_line(error)
    if not any(it in str(error) for it in _SAID) or line is None:
        return ""
    frame, nodes = line
    takes_values = any(isinstance(it, ast.Attribute) and it.attr == "values" for it in nodes)
    for node in nodes:
        table = value_of(node, frame) if isinstance(node, ast.Name | ast.Attribute) else None
        kinds = _of_no_numbers(table) if is_table(table) else {}
        if not kinds or len(kinds) > _MOST_NAMES:
            continue
        name, names = ast.unparse(node), [*kinds]
        shown = [f"{it!r} ({_first(table, it)})" for it in names]
        many = "columns" if len(names) > 1 else "column"
        write = f"{name}.drop(columns={names!r})"
        if not {*kinds.values()} & {*_TIMES}:
            write += f", or pd.get_dummies({name}, columns={names!r}),"
        also = ", and .to_numpy(dtype='float32') for .values" if takes_values else ""
        said = f"{name} has no numbers in the {many} {', '.join(shown)}"
        return f"{said}: write {write} for {name}{also}"
    return ""


def _of_no_numbers(table: Any) -> dict[str, str]:
    """Names of such columns, and the kinds of their dtypes."""
    kinds = {str(name): str(getattr(it, "kind", "O")) for name, it in table.dtypes.items()}
    return {name: kind for name, kind in kinds.items() if kind not in _NUMBERS}


def _first(table: Any, name: str) -> str:
    return str(table[name].iloc[0])[:_MOST_SHOWN]
