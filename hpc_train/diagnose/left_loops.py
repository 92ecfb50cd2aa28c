"""A hang of ranks behind a loop of the script's, and of others that are still in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.diagnose.stacks import Stack, is_installed
from hpc_train.diagnose.uneven_shares import UNEVEN, ranks_text

_PLACE = re.compile(r"was in (?P<function>.+) \((?P<file>.+):(?P<line>\d+)\)")
# With one of these above it, a line behind the loop may be another epoch's, of some ranks alone.
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.While, ast.Match)
_LEAVES = (ast.Break, ast.Return)
_FIX = (
    "give each rank as many batches, as DataLoader(data, sampler=DistributedSampler(data)) does, or"
    " let all take the smallest number of them"
)


def left_loops(stacks: Sequence[Stack]) -> str:
    """Which ranks have left a loop that others have not, where the text leaves no other way.

    All stand in one function. The lines of some are in a `for` without a break; those of the others
    stand behind it, and both under no condition, so that each rank comes to both in turn.
    """
    found = [_PLACE.search(stack.place.text) for stack in stacks]
    places = [it for it in found if it]
    if len(places) < len(stacks) or not all(stack.waits for stack in stacks):
        return ""
    lines = [int(it["line"]) for it in places]
    if len({(it["file"], it["function"]) for it in places}) != 1 or len({*lines}) < 2:
        return ""
    file = places[0]["file"]
    tree = script_tree(Path(file)) if not is_installed(file) else None
    first, last = min(lines), max(lines)
    loop = _loop_between(tree, first, last) if tree is not None else None
    if loop is None or any(_is_in(loop, it) == (it > (loop.end_lineno or 0)) for it in lines):
        return ""
    inside = [stack.rank for stack, it in zip(stacks, lines, strict=True) if _is_in(loop, it)]
    behind = [stack.rank for stack in stacks if stack.rank not in inside]
    has, have = ("has" if len(it) == 1 else "have" for it in (behind, inside))
    its, wait = ("its", "waits") if len(behind) == 1 else ("their", "wait")
    name = Path(file).name
    return (
        f"{ranks_text(behind)} {has} left {its} loop of {name}:{loop.lineno}, and {wait} at"
        f" {name}:{last}, and {ranks_text(inside)} {have} not, at {name}:{first}: {UNEVEN}: {_FIX}"
    )


def _loop_between(tree: ast.Module, inside: int, behind: int) -> ast.For | None:
    """The outermost `for` that has one line and not the other, which surely stands behind it."""
    first, second = _above(tree, inside), _above(tree, behind)
    loops = [it for it in first if isinstance(it, ast.For) and not _is_in(it, behind)]
    if not loops:
        return None
    loop = loops[0]
    apart = [it for it in second if not _is_in(it, inside)]
    before = [it for it in first[: first.index(loop)] if not _is_in(it, behind)]
    if before or any(isinstance(it, _BRANCHES) for it in apart):
        return None
    end = loop.end_lineno or behind
    leaves: list[ast.AST] = [it for it in ast.walk(loop) if isinstance(it, _LEAVES)]
    leaves += [
        it
        for it in ast.walk(tree)
        if isinstance(it, (*_LEAVES, ast.Continue)) and end < it.lineno < behind
    ]
    return loop if behind > end and not leaves else None


def _above(tree: ast.Module, line: int) -> list[ast.stmt]:
    """The statements that have this line, the outermost first."""
    having = [it for it in ast.walk(tree) if isinstance(it, ast.stmt) and _is_in(it, line)]
    return sorted(having, key=lambda it: (it.lineno, -(it.end_lineno or it.lineno)))


def _is_in(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
