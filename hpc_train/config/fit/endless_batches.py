"""The Trainer's num_training_batches in configure_optimizers, where it is infinite.

Lightning's fit loop has `max_batches = float("inf")` until `setup_data` has counted the loaders
(loops/fit_loop.py), which is after configure_optimizers. A OneCycleLR of so many steps fails, and a
CosineAnnealingLR keeps its first learning rate for ever, without a word.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from hpc_train.config.fit.late_loaders import ALL_STEPS, EarlyHook, surely_run, written_in
from hpc_train.config.python_text.class_kind import place_of

BATCHES = "num_training_batches"
# What makes a schedule, of torch's or of others, or a whole number.
_TAKES = re.compile(r"(\w*LR|\w*[Ss]chedul\w*|int|ceil|round|range)")
_IS_LOOKED_AT = ("inf", "isfinite", "isinstance(")
_OPEN = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.Compare, ast.ListComp, ast.GeneratorExp)


def endless_batches(early: EarlyHook, path: Sequence[str]) -> tuple[str, str]:
    """What configure_optimizers surely counts with, and what to write; else empty.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    if any(it in ast.unparse(early.method) for it in _IS_LOOKED_AT):
        return "", ""
    names = written_in(early.method, attribute=BATCHES)
    used = next((it for each in surely_run(early.method) for it in _used(each, names)), None)
    if used is None:
        return "", ""
    node, text, takes = used
    place = place_of(early.found, node.lineno, path)
    said = f"{early.class_path}.configure_optimizers counts with self.trainer.{BATCHES} ({place})"
    all_steps = f"self.trainer.{ALL_STEPS}"
    of_all = f"write {all_steps}, the steps of the whole training, for {text}"
    of_one = f"write {all_steps} // self.trainer.max_epochs for {text}"
    is_of_one = early.has_epochs and not takes.endswith("OneCycleLR")
    return f"{said}, which is infinite there", of_one if is_of_one else of_all


def _used(node: ast.AST, names: set[str]) -> Iterator[tuple[ast.expr, str, str]]:
    """What computes with one of these, how it is written there, and what is called with it."""
    held: list[ast.expr] = []
    takes = ""
    if isinstance(node, ast.BinOp):
        held = [node.left, node.right]
    elif isinstance(node, ast.Call):
        takes = ast.unparse(node.func).rpartition(".")[2]
        if takes in ("min", "print") or "log" in takes:
            return
        if _TAKES.fullmatch(takes):
            held = [*node.args, *(it.value for it in node.keywords)]
    for it in held:
        if ast.unparse(it) in names:
            yield it, ast.unparse(it), takes
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _OPEN):
            yield from _used(child, names)
