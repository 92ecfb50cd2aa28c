"""The Trainer, or its logger, that the `__init__` of a model or data asks for: it has neither yet.

`LightningModule.trainer` raises, and `.logger` is None, until a Trainer has the module
(pytorch_lightning/core/module.py); a LightningDataModule's `trainer` is None (core/datamodule.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hpc_train.config.fit.late_loaders import (
    ALL_STEPS,
    LOADER,
    fix_of_loader,
    run_by,
    surely_run,
    takers,
)
from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.method_signatures import methods_of

_MODEL, _DATA = "LightningModule", "LightningDataModule"
TRAINER, _LOGGER, _LOGGERS = "self.trainer", "self.logger", "self.loggers"
# With one of these in a class it may have been given a Trainer before.
_OWN_WAYS = ("trainer =", "_trainer", "_fabric", "setattr(", "__getattr", "def __new__")
_OF_STEPS = (ALL_STEPS, "num_training_batches")  # which setup() has not, or not rightly
LATER = "setup(self, stage)"


def early_asks(
    class_path: str, path: Sequence[str], *, has_epochs: bool
) -> Iterator[tuple[str, str]]:
    """Of each line what is wrong, with its place, and what to write; what is not sure is not.

    Args:
        class_path: Of the model or the data.
        path: As `sys.path`, with the user's folder first.
        has_epochs: Whether the training has a number of them.
    """
    found = locate(class_path, path)
    start = _own_start(found) if found else None
    if found is None or start is None:
        return
    kind, method = start
    for statement in surely_run(method):
        if asked := next(_asked(statement, kind), None):
            place = place_of(found, asked.lineno, path)
            said = f"{class_path}.__init__ asks {ast.unparse(asked)} ({place})"
            said += ", and there is no Trainer yet"
            loader = _of_loader(statement, asked, method, has_epochs=has_epochs)
            yield said, loader or _fix(statement, asked, found)


def _own_start(found: Located) -> tuple[str, ast.FunctionDef] | None:
    """The class's one base, of Lightning's, and its `__init__`."""
    definition = found.definition
    if not isinstance(definition, ast.ClassDef) or definition.decorator_list or definition.keywords:
        return None
    bases = [ast.unparse(it).rpartition(".")[2] for it in definition.bases]
    start = methods_of(definition).get("__init__")
    if len(bases) != 1 or bases[0] not in (_MODEL, _DATA) or start is None or start.decorator_list:
        return None
    text = ast.unparse(definition)
    given = {it.lstrip("_") for it in methods_of(definition)}
    if any(it in text for it in _OWN_WAYS) or given & {"trainer", "logger", "loggers"}:
        return None
    return bases[0], start


def _asked(statement: ast.stmt, kind: str) -> Iterator[ast.expr]:
    """What the statement surely takes of a Trainer or a logger."""
    for node in run_by(statement):
        held = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None
        name = ast.unparse(held) if held is not None else ""
        of_logger = isinstance(node, ast.Attribute) and name == _LOGGER
        of_loggers = isinstance(node, ast.Subscript) and name == _LOGGERS
        if name == TRAINER or (kind == _MODEL and (of_logger or of_loggers)):
            assert isinstance(node, ast.expr)
            yield node


def _of_loader(
    statement: ast.stmt, asked: ast.expr, method: ast.FunctionDef, *, has_epochs: bool
) -> str:
    """What to write for a loader, which is not there in setup() either; else empty."""
    if not isinstance(asked, ast.Attribute) or asked.attr != LOADER:
        return ""
    taken = next(takers([*run_by(statement)], {ast.unparse(asked)}), asked)
    return f"in configure_optimizers {fix_of_loader(method, taken, has_epochs=has_epochs)}"


def _fix(statement: ast.stmt, asked: ast.expr, found: Located) -> str:
    if isinstance(asked, ast.Attribute) and asked.attr in _OF_STEPS:
        return (
            f"in configure_optimizers write {TRAINER}.{ALL_STEPS}, the steps of the whole training"
        )
    text = ast.unparse(statement)
    names = {it.id for it in ast.walk(statement) if isinstance(it, ast.Name)}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kept = targets and all(isinstance(it, ast.Attribute) for it in targets)
    definition = found.definition
    has_setup = isinstance(definition, ast.ClassDef) and "setup" in methods_of(definition)
    if kept and names == {"self"}:
        into = f"its {LATER}" if has_setup else f"a method def {LATER}:"
        return f"move the line {text} into {into}"
    return f"ask for it from {LATER} on, which runs before configure_optimizers"
