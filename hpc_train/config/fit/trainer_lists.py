"""What a class asks Lightning's Trainer for as one object, and the Trainer has in a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.config.fit.hook_notes import hooks_of
from hpc_train.config.python_text.class_kind import Located

# By what is asked for: the list, and how its first is written.
OF_SEVERAL: Mapping[str, tuple[str, str]] = {
    "optimizer": ("optimizers", "[0]"),
    **dict.fromkeys(("scheduler", "lr_scheduler"), ("lr_scheduler_configs", "[0].scheduler")),
}
_LOOKS = ("hasattr(", "getattr(", "setattr(", "AttributeError", "suppress(")


def trainer_lists(kind: str, class_path: str, found: Located, path: Sequence[str]) -> Iterator[str]:
    """A line for each of them; none where the class looks first, or sets it itself.

    Args:
        kind: LightningModule, LightningDataModule or Callback, of which the class is one.
        path: As `sys.path`.
    """
    definition = found.definition
    if not isinstance(definition, ast.ClassDef):
        return
    text = ast.unparse(definition)
    if any(it in text for it in _LOOKS):
        return
    hooks = hooks_of(kind, tuple(path))
    for method in (it for it in definition.body if isinstance(it, ast.FunctionDef)):
        is_given = method.name in hooks and "trainer" in {it.arg for it in method.args.args}
        names = {"self.trainer"} if kind != "Callback" else set()
        names |= {"trainer"} if is_given else set()
        for name, it in _asked(method, names):
            several, first = OF_SEVERAL[it.attr]
            has = f"{class_path} asks {name}.{it.attr} (line {it.lineno}), which a Trainer has not"
            yield f"{has}: write {name}.{several}{first}"


def _asked(method: ast.FunctionDef, names: set[str]) -> Iterator[tuple[str, ast.Attribute]]:
    """The first of each that is read; none where the method sets one, or the name itself."""
    asked = [it for it in ast.walk(method) if isinstance(it, ast.Attribute)]
    asked = [it for it in asked if it.attr in OF_SEVERAL and ast.unparse(it.value) in names]
    stored = [it for it in ast.walk(method) if isinstance(it, ast.Name | ast.Attribute)]
    set_here = {ast.unparse(it) for it in stored if not isinstance(it.ctx, ast.Load)}
    if not set_here & {*names, *map(ast.unparse, asked)}:
        yield from {ast.unparse(it): (ast.unparse(it.value), it) for it in reversed(asked)}.values()
