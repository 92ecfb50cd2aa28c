"""Callbacks that Lightning 1's Trainer took by arguments of their own, and where they go today.

Source: Lightning's pages "Upgrade from 1.x to 2.0": `checkpoint_callback` is one of `callbacks`, or
`enable_checkpointing` where it was True or False; `early_stop_callback` is one of `callbacks`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_CHECKPOINT, _EARLY = "checkpoint_callback", "early_stop_callback"
OLD_CALLBACKS = (_CHECKPOINT, _EARLY)


def is_switch(word: ast.keyword) -> bool:
    """Whether it is no callback: True, False or None."""
    return isinstance(word.value, ast.Constant)


def of_switch(word: ast.keyword) -> str:
    """What to write for `checkpoint_callback=False` and the like."""
    value = word.value.value if isinstance(word.value, ast.Constant) else None
    if word.arg == _EARLY:
        stops = 'write callbacks=[EarlyStopping(monitor="val_loss")], of Lightning\'s callbacks'
        return stops if value else "leave it out"
    return "leave it out" if value is None else f"write enable_checkpointing={bool(value)}"


def of_callbacks(words: Sequence[ast.keyword], given: ast.expr | None) -> str:
    """The one list that has all of them, with what `callbacks` is given beside them."""
    names = [ast.unparse(it.value) for it in words]
    if isinstance(given, ast.List):
        names = [*map(ast.unparse, given.elts), *names]
    elif given is not None:
        names = [f"*{ast.unparse(given)}", *names]
    may_be_switch = [
        f"; if it is True or False: enable_checkpointing={ast.unparse(it.value)}"
        for it in words
        if it.arg == _CHECKPOINT and isinstance(it.value, ast.Attribute | ast.Subscript)
    ]
    return "".join([f"write callbacks=[{', '.join(names)}]", *may_be_switch])
