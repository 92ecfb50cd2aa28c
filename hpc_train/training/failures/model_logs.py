"""What a model logs, and where: told by the text of its classes, which is not run."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpc_train.training.failures.frame_text import is_users, shown_file
from hpc_train.training.failures.users_method import class_text

_ONCE_AN_EPOCH = ("on_train_epoch_end", "on_train_end")


@dataclass(frozen=True)
class ModelLog:
    """A call of self.log.

    Attributes:
        place: `tab.py:42`.
        method: In which it stands.
        name: Of the metric; empty where it is worked out.
        by_step: Whether the value of each step is kept.
    """

    place: str
    method: str
    name: str
    by_step: bool


def logs_of(model: Any) -> Iterator[ModelLog]:
    """Those in the methods of the model's own classes, but for methods that another replaces."""
    seen: set[str] = set()
    for kind in type(model).__mro__:
        try:
            file = inspect.getsourcefile(kind)
            lines, first = inspect.getsourcelines(kind) if file and is_users(file) else ([], 0)
        except (OSError, TypeError):
            continue
        tree = class_text(lines, first)
        methods = [it for it in tree.body if isinstance(it, ast.FunctionDef)] if tree else []
        for method in (it for it in methods if it.name not in seen):
            for call in (it for it in ast.walk(method) if isinstance(it, ast.Call)):
                if ast.unparse(call.func) in ("self.log", "self.log_dict"):
                    yield from _of_call(call, method.name, shown_file(str(file)))
        seen |= {it.name for it in methods}


def _of_call(call: ast.Call, method: str, file: str) -> Iterator[ModelLog]:
    named = {it.arg: it.value for it in call.keywords}
    by_step = named.get("on_step")
    is_off = isinstance(by_step, ast.Constant) and by_step.value is False
    given = (*call.args, *(named[it] for it in ("name", "dictionary") if it in named))[:1]
    keys = [key for it in given for key in (it.keys if isinstance(it, ast.Dict) else [it])]
    for key in keys:
        text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
        is_by_step = not is_off and method not in _ONCE_AN_EPOCH
        yield ModelLog(f"{file}:{call.lineno}", method, text, is_by_step)
