"""The Trainer's train_dataloader, which is None until a fit has its loaders: told from the text.

Lightning calls configure_optimizers before it (trainer/trainer.py: `_run` has the strategy set up,
and `_run_stage` the fit loop with `setup_data`; `estimated_stepping_batches` calls that itself).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpc_train.config.fit.silent_callbacks import lightnings_callback
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.method_signatures import is_of_lightning_alone, methods_of
from hpc_train.config.specs import classes_of, read_object

LOADER = "train_dataloader"
ALL_STEPS = "estimated_stepping_batches"
PARTS = ("epochs", "steps_per_epoch")  # of a OneCycleLR, which total_steps stands for
# A schedule that counts steps is stepped once an epoch without it.
_EACH_STEP = '"interval": "step" beside "scheduler" in the dict that is returned'
_HOOK = "configure_optimizers"
# With one of these in a class its loaders may be there before.
_MAKE_THEM = ("estimated_stepping_batches", "setup_data", "fit_loop", "reset_train", "setattr(")
_OTHER_WAYS = ("except", "suppress(", "def trainer", f".{LOADER} =", f".{LOADER} is", "hasattr(")
# What may not be run, or later.
_OPEN = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.GeneratorExp, ast.DictComp)
_PLAIN = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.AugAssign)


def late_loader(early: EarlyHook, path: Sequence[str]) -> tuple[str, str]:
    """What configure_optimizers surely asks of it too early, and what to write; else empty.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    asked = next(_asked(early.method), None)
    if asked is None:
        return "", ""
    place = place_of(early.found, asked.lineno, path)
    said = f"{early.class_path}.{_HOOK} asks self.trainer.{LOADER} ({place}), which is None there"
    return said, fix_of_loader(early.method, asked, has_epochs=early.has_epochs)


@dataclass(frozen=True, slots=True)
class EarlyHook:
    """The configure_optimizers of the user's model, which surely runs before there are loaders.

    Attributes:
        has_epochs: Whether the training has a number of them.
    """

    class_path: str
    found: Located
    method: ast.FunctionDef
    has_epochs: bool


def early_hook(loaded: LoadedConfig, path: Sequence[str]) -> EarlyHook | None:
    """The hook; None where the model has none, or where its loaders may be there before.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    class_path, _ = read_object(loaded.config.model, "model", loaded.origins)
    found = locate(class_path, path)
    definition = found.definition if found else None
    if not found or not isinstance(definition, ast.ClassDef):
        return None
    text = ast.unparse(definition)
    if not is_of_lightning_alone(definition) or any(it in text for it in _MAKE_THEM + _OTHER_WAYS):
        return None
    if not _others_are_silent(loaded, path):
        return None
    method = methods_of(definition).get(_HOOK)
    if method is None or method.decorator_list:
        return None
    epochs = loaded.config.trainer.get("max_epochs")
    return EarlyHook(class_path, found, method, type(epochs) is int and epochs > 0)


def fix_of_loader(
    method: ast.AST, asked: ast.AST, *, has_epochs: bool, trainer: str = "self.trainer"
) -> str:
    """What to write for `len(self.trainer.train_dataloader)`, or another use of the loader.

    Args:
        method: All of the function that asks.
        asked: What takes the loader: the call of len, or another.
        has_epochs: Whether the training has a number of them.
        trainer: As the function has it.
    """
    all_steps = f"{trainer}.{ALL_STEPS}"
    for call in (it for it in ast.walk(method) if isinstance(it, ast.Call)):
        if ast.unparse(call.func).rpartition(".")[2] != "OneCycleLR":
            continue
        parts = [it for it in call.keywords if it.arg in PARTS]
        inner = [part for it in parts for part in ast.walk(it.value)]
        names = {it.id for it in inner if isinstance(it, ast.Name)}
        if asked in inner or names & _named(method, asked):
            in_place = " and ".join(str(it.arg) for it in parts)
            each = "" if "'step'" in ast.unparse(method) else f", and {_EACH_STEP}"
            return f"write total_steps={all_steps} in place of {in_place}{each}"
    if not isinstance(asked, ast.Call) or ast.unparse(asked.func) != "len":
        return f"take the loader of the data: {trainer}.datamodule.{LOADER}()"
    if not has_epochs:
        return f"write {all_steps}, the steps of the whole training"
    return f"write {all_steps} // {trainer}.max_epochs for {ast.unparse(asked)}"


def _named(method: ast.AST, asked: ast.AST) -> set[str]:
    """Names that are given what is made of it."""
    return {
        target.id
        for it in ast.walk(method)
        if isinstance(it, ast.Assign) and asked in ast.walk(it.value)
        for target in it.targets
        if isinstance(target, ast.Name)
    }


def takers(nodes: Sequence[ast.AST], loaders: set[str]) -> Iterator[ast.expr]:
    """What takes more of a loader than whether it is there: `len(it)`, `it.dataset`, `it[0]`."""
    for node in nodes:
        held: list[ast.expr] = []
        if isinstance(node, ast.Attribute | ast.Subscript):
            held = [node.value]
        elif isinstance(node, ast.Call):
            is_len = ast.unparse(node.func) in ("len", "iter", "next")
            held = [*(node.args[:1] if is_len else []), node.func]
        if isinstance(node, ast.expr) and any(ast.unparse(it) in loaders for it in held):
            yield node


def written_in(method: ast.AST, trainer: str = "self.trainer", attribute: str = LOADER) -> set[str]:
    """How the method writes an attribute of the Trainer's: whole, or by a name given once."""
    names = {trainer}
    every = [it for it in ast.walk(method) if isinstance(it, ast.Name)]
    stored = [it.id for it in every if isinstance(it.ctx, ast.Store)]
    given = [it for it in ast.walk(method) if isinstance(it, ast.Assign) and len(it.targets) == 1]
    once = {
        it.targets[0].id: ast.unparse(it.value)
        for it in given
        if isinstance(it.targets[0], ast.Name) and stored.count(it.targets[0].id) == 1
    }
    names |= {name for name, value in once.items() if value == trainer}
    loaders = {f"{it}.{attribute}" for it in names}
    return loaders | {name for name, value in once.items() if value in loaders}


def _asked(method: ast.FunctionDef) -> Iterator[ast.expr]:
    loaders = written_in(method)
    for statement in surely_run(method):
        yield from takers([*run_by(statement)], loaders)


def surely_run(method: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The plain statements that each call of the method comes to."""
    for statement in method.body:
        if isinstance(statement, _PLAIN):
            yield statement
            if isinstance(statement, ast.Return):
                return
        elif any(isinstance(it, ast.Return | ast.Raise) for it in ast.walk(statement)):
            return


def run_by(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are surely run with it."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _OPEN):
            yield from run_by(child)


def _others_are_silent(loaded: LoadedConfig, path: Sequence[str]) -> bool:
    """Whether no callback and no data of the user's may have asked for the loaders before."""
    for key, spec in classes_of(loaded.config):
        if key == "model" or (key != "data" and lightnings_callback(spec, path)):
            continue
        found = locate(read_object(spec, key, loaded.origins)[0], path)
        definition = found.definition if found else None
        if definition is None or any(it in ast.unparse(definition) for it in _MAKE_THEM):
            return False
    return True
