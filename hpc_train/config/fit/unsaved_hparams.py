"""`self.hparams.lr` of a class that never calls `self.save_hyperparameters()`: it has none.

Source: pytorch_lightning/core/mixins/hparams_mixin.py: `hparams` is empty until then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hpc_train.config.fit.late_loaders import run_by, surely_run
from hpc_train.config.python_text.class_kind import locate, place_of
from hpc_train.config.python_text.method_signatures import hands_itself_on, methods_of
from hpc_train.config.python_text.whole_class import with_its_bases

_HPARAMS = "self.hparams"
_SAVES = "save_hyperparameters"
# With one of these in the text they may have come in another way, or be another thing.
_OWN_WAYS = (
    _SAVES,
    "hparams.update",
    "hparams.setdefault",
    "_hparams",
    "setattr",
    "__dict__",
    "getattr",
    "exec(",
)
_ALWAYS_RUN = ("__init__", "configure_optimizers", "training_step", "setup", "train_dataloader")
_LIGHTNINGS = ("LightningModule", "LightningDataModule")


def unsaved_hparams(class_path: str, path: Sequence[str]) -> tuple[str, str]:
    """What is wrong, with its line, and what to write; empty where it is not sure.

    Args:
        class_path: Of the model or the data.
        path: As `sys.path`, with the user's folder first.
    """
    found = locate(class_path, path)
    own = found.definition if found else None
    if found is None or not isinstance(own, ast.ClassDef) or own.decorator_list or own.keywords:
        return "", ""
    whole = own if _is_lightnings(own) else with_its_bases(found, path)
    start = methods_of(own).get("__init__")
    if whole is None or start is None or _has_own_ways(whole):
        return "", ""
    taken = {it.arg for it in (*start.args.posonlyargs, *start.args.args, *start.args.kwonlyargs)}
    for node in _asked(own):
        if node.attr in taken:
            place = place_of(found, node.lineno, path)
            said = f"{class_path} asks {ast.unparse(node)} ({place}), and nothing calls"
            line = f"self.{_SAVES}()"
            return f"{said} {line}, by which hparams has the arguments of __init__", (
                f"write {line} in its __init__ ({place_of(found, start.lineno, path)}), behind"
                " super().__init__()"
            )
    return "", ""


def _is_lightnings(definition: ast.ClassDef) -> bool:
    bases = [ast.unparse(it).rpartition(".")[2] for it in definition.bases]
    return len(bases) == 1 and bases[0] in _LIGHTNINGS


def _has_own_ways(definition: ast.ClassDef) -> bool:
    """Whether it may have its hparams otherwise: it stores them, or hands itself to others."""
    text = ast.unparse(definition)
    given = {it.name for it in definition.body if isinstance(it, ast.FunctionDef)}
    if any(it in text for it in _OWN_WAYS) or "hparams" in given:
        return True
    read = {
        id(it.value)
        for it in ast.walk(definition)
        if isinstance(it, ast.Attribute) and isinstance(it.ctx, ast.Load)
    }
    # `self.hparams` itself, as in `self.hparams["lr"] = ...` or `update(self.hparams)`.
    held = [
        it
        for it in ast.walk(definition)
        if isinstance(it, ast.Attribute) and ast.unparse(it) == _HPARAMS
    ]
    return hands_itself_on(definition) or any(id(it) not in read for it in held)


def _asked(definition: ast.ClassDef) -> Iterator[ast.Attribute]:
    """The names of `self.hparams` that each fit surely asks for."""
    methods = methods_of(definition)
    for name in (it for it in _ALWAYS_RUN if it in methods):
        for statement in surely_run(methods[name]):
            for node in run_by(statement):
                if isinstance(node, ast.Attribute) and ast.unparse(node.value) == _HPARAMS:
                    yield node
