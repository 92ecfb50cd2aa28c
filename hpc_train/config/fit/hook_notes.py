"""What a class has of Lightning's hooks that Lightning 2 does not call, or calls otherwise.

Read from the text of the class and of Lightning's own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from hpc_train.config.python_text.class_kind import Located, locate

# Lightning's classes that have the hooks, by the name of what a class has to derive from.
_CLASSES = {
    "LightningModule": ("core.hooks.ModelHooks", "core.hooks.DataHooks"),
    "LightningDataModule": ("core.hooks.DataHooks",),
    "Callback": ("callbacks.callback.Callback",),
}
_PACKAGES = ("pytorch_lightning", "lightning.pytorch")
# Hooks that Lightning 1 called -> those of Lightning 2 in their place.
GONE = {
    "on_epoch_start": "on_train_epoch_start",
    "on_epoch_end": "on_train_epoch_end",
    "on_batch_start": "on_train_batch_start",
    "on_batch_end": "on_train_batch_end",
    "on_pretrain_routine_start": "on_fit_start",
    "on_pretrain_routine_end": "on_fit_start",
    "training_epoch_end": "on_train_epoch_end",
    "validation_epoch_end": "on_validation_epoch_end",
    "test_epoch_end": "on_test_epoch_end",
    "training_step_end": "training_step",
    "validation_step_end": "validation_step",
}
STAGED, _STAGE = ("setup", "teardown"), "stage"  # called with stage=... (trainer/call.py)
# A model with one of these is refused as the fit, or the test, begins
# (pytorch_lightning, trainer/configuration_validator.py).
REFUSED = {
    name: GONE[name] for name in ("training_epoch_end", "validation_epoch_end", "test_epoch_end")
}


def hook_notes(kind: str, class_path: str, found: Located, path: Sequence[str]) -> Iterator[str]:
    """A line for each method that is none of Lightning 2's, or cannot take what it is given.

    Args:
        kind: LightningModule, LightningDataModule or Callback, of which the class is one.
        path: As `sys.path`.
    """
    if not isinstance(found.definition, ast.ClassDef) or found.module.startswith(_PACKAGES):
        return
    text = ast.unparse(found.definition)
    for method in (it for it in found.definition.body if isinstance(it, ast.FunctionDef)):
        article = "an" if method.name[0] in "aeiou" else "a"
        has = f"{class_path} has {article} {method.name} (line {method.lineno})"
        taken = hooks_of(kind, tuple(path)).get(method.name)
        if kind != "LightningDataModule" and taken is None and method.name in GONE:
            is_refused = kind == "LightningModule" and method.name in REFUSED
            if is_refused or f".{method.name}" not in text:
                does = "refuses to run with" if is_refused else "does not call"
                yield f"{has}, which Lightning 2 {does}: write {GONE[method.name]}"
        elif taken is not None and cannot_be_called(method, taken):
            names = ["self", *(it.arg for it in taken.args[1:])]
            yield f"{has}, and Lightning calls it as def {method.name}({', '.join(names)})"


class Taken:
    """What a hook of Lightning's takes, `self` among it, and how much of it always comes."""

    def __init__(self, method: ast.FunctionDef) -> None:
        self.args = [*method.args.posonlyargs, *method.args.args]
        self.required = len(self.args) - len(method.args.defaults)


@lru_cache(maxsize=8)
def hooks_of(kind: str, path: tuple[str, ...]) -> Mapping[str, Taken]:
    """The hooks of Lightning's own text whose arguments it tells; none where it is not found."""
    hooks: dict[str, Taken] = {}
    for name in _CLASSES[kind]:
        classes = (locate(f"{package}.{name}", path) for package in _PACKAGES)
        for found in [it for it in classes if it and isinstance(it.definition, ast.ClassDef)][:1]:
            for method in found.definition.body if found.definition else ():
                if not isinstance(method, ast.FunctionDef) or method.decorator_list:
                    continue
                if not (method.args.vararg or method.args.kwarg):
                    hooks[method.name] = Taken(method)
    return hooks


def cannot_be_called(method: ast.FunctionDef, taken: Taken) -> bool:
    """Whether a method needs more than a hook is given, or cannot take what always comes."""
    given = method.args
    if method.decorator_list or given.vararg or given.kwarg or method.name.startswith("_"):
        return False
    own = [*given.posonlyargs, *given.args]
    needed = len(own) - len(given.defaults)
    by_keyword = dict(zip([it.arg for it in given.kwonlyargs], given.kw_defaults, strict=True))
    count = len(own)
    if method.name in STAGED:
        if _STAGE not in {*by_keyword, *(it.arg for it in own)}:
            return True
        count += _STAGE in by_keyword
        by_keyword.pop(_STAGE, None)
    return None in by_keyword.values() or needed > len(taken.args) or count < taken.required


def only_prepared(class_path: str, found: Located, path: Sequence[str]) -> Iterator[str]:
    """A line where prepare_data alone assigns what another method reads: other ranks lack it.

    None where a base's `setup` or `__init__` may assign it as well.
    """
    definition = found.definition
    if not isinstance(definition, ast.ClassDef):
        return
    methods = {it.name: it for it in definition.body if isinstance(it, ast.FunctionDef)}
    prepare = methods.pop("prepare_data", None)
    if prepare is None or "setattr(" in ast.unparse(definition):
        return
    bases = [locate(f"{found.module}.{ast.unparse(it)}", path) for it in definition.bases]
    if any(it is None or not isinstance(it.definition, ast.ClassDef) for it in bases):
        return
    theirs = [it.definition for it in bases if it and not it.module.startswith(_PACKAGES)]
    runs_theirs = "setup" not in methods or "super()" in ast.unparse(methods["setup"])
    others = [*methods.values(), *(it for it in theirs if it)]
    stored = [] if theirs and runs_theirs else _attributes(prepare, ast.Store)
    kept = {name for it in methods.values() for name in _attributes(it, ast.Store)}
    begun = {name for base in theirs for name in _begun_by(base)}
    read = {name for it in others for name in _attributes(it, ast.Load)}
    alone = [f"self.{it}" for it in dict.fromkeys(stored) if it in read and it not in kept | begun]
    if alone:
        where = f"{class_path} assigns {', '.join(alone)} in prepare_data (line {prepare.lineno})"
        it = "it" if len(alone) == 1 else "them"
        yield f"{where}, which one rank of a node alone runs: assign {it} in setup(self, stage)"


def _begun_by(base: ast.stmt | None) -> Iterator[str]:
    """What a class assigns in `__init__`."""
    for it in base.body if isinstance(base, ast.ClassDef) else ():
        if isinstance(it, ast.FunctionDef) and it.name == "__init__":
            yield from _attributes(it, ast.Store)


def _attributes(node: ast.AST, context: type[ast.expr_context]) -> list[str]:
    """The names in `self.NAME` that are read, or assigned."""
    return [
        it.attr
        for it in ast.walk(node)
        if isinstance(it, ast.Attribute)
        and isinstance(it.ctx, context)
        and isinstance(it.value, ast.Name)
        and it.value.id == "self"
    ]
