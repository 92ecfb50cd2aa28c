"""A pandas table that lacks a column, or a number that it takes as a name and not as a place.

`frame[0]` is a column and `series[0]` a label of its index (pandas' user guide, "Indexing and
selecting data"; since pandas 3 a number in brackets alone is never a place).
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
from collections.abc import Sequence
from numbers import Integral
from types import FrameType, SimpleNamespace
from typing import Any

from hpc_train.config.words import did_you_mean
from hpc_train.training.failures.frame_text import IN_WORKER, frames_in, is_at, is_users
from hpc_train.training.failures.frame_values import failing_line, value_of
from hpc_train.training.failures.samples_differ import sets_of

_FRAME, _SERIES = "DataFrame", "Series"
_MOST_NAMES = 5
_KEY = re.compile(r"^KeyError: (?P<key>'[^'\n]+'|\d+)\s*\Z", re.MULTILINE)


def table_key(error: KeyError) -> str:
    """What to write for it; empty where the line takes nothing of a table."""
    if IN_WORKER in str(error):
        found = _KEY.search(str(error))
        return _of_worker(error, ast.literal_eval(found["key"])) if found else ""
    key = error.args[0] if error.args else None
    line = failing_line(error)
    return _told(*line, key) if line is not None else ""


def _of_worker(error: KeyError, key: object) -> str:
    """By the line that its text has, and the set that the rank has itself."""
    own = [(file, line) for file, line, _ in frames_in(str(error)) if is_users(file)]
    if not own:
        return ""
    file, line = own[-1]
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ""
    nodes = [it for it in ast.walk(tree) if is_at(it, line)]
    seen: Any = (SimpleNamespace(f_locals={"self": it}, f_globals={}) for it in sets_of(error))
    return next(filter(None, (_told(it, nodes, key) for it in seen)), "")


def _told(frame: FrameType, nodes: Sequence[ast.AST], key: object) -> str:
    if not isinstance(key, str | Integral):
        return ""
    taken = [it for it in nodes if isinstance(it, ast.Subscript)]
    for node in sorted(taken, key=lambda it: (it.lineno, it.col_offset, it.end_col_offset or 0)):
        owner, is_loc = node.value, False
        if isinstance(owner, ast.Attribute) and owner.attr == "loc":
            owner, is_loc = owner.value, True
        table = value_of(owner, frame)
        kind = _kind(table)
        if not kind or isinstance(node.slice, ast.Tuple | ast.Slice):
            continue
        of_columns = kind == _FRAME and not is_loc
        names = (table.columns if of_columns else table.index).tolist()
        if key in names:
            continue
        name, index = ast.unparse(owner), ast.unparse(node.slice)
        if isinstance(key, str):
            near = did_you_mean(key, [str(it) for it in names])
            has = "the columns" if of_columns else "the labels"
            return f"{name} has {has} {_shown(names)}{f': {near}' if near else ''}"
        write = f"write {name}.iloc[{index}]"
        if of_columns:
            said = f"{name}[...] is a column of that name ({_shown(names)}), and no row"
            return f"{said}: {write}"
        said = f"its index ({_shown(names)}) has no label {key}"
        return f"{ast.unparse(node.value)}[...] takes a label, and {said}: {write} for the place"
    return ""


def is_table(value: object) -> bool:
    """Whether it is a DataFrame of pandas."""
    return _kind(value) == _FRAME


def _kind(value: Any) -> str:
    """`DataFrame` or `Series` of pandas; empty of anything else."""
    kind = type(value)
    is_pandas = kind.__module__.partition(".")[0] == "pandas"
    return kind.__name__ if is_pandas and kind.__name__ in (_FRAME, _SERIES) else ""


def _shown(names: Sequence[object]) -> str:
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"{', '.join(map(repr, itertools.islice(names, _MOST_NAMES)))}{more}"
