"""Methods that are meant as hooks of Lightning's, under names that nobody calls.

Told where nothing in the project speaks of the name: Lightning passes such a method over.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hpc_train.config.fit.hook_notes import GONE
from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.modules import (
    bound_in,
    find_module,
    full_name,
)
from hpc_train.config.python_text.python_folders import is_own
from hpc_train.config.words import near_words

# Where Lightning's own text has the hooks, by the name of what a class derives from.
_ROOTS = {
    "LightningModule": (
        "core.hooks.ModelHooks",
        "core.hooks.DataHooks",
        "core.hooks.CheckpointHooks",
    ),
    "LightningDataModule": ("core.hooks.DataHooks",),
    "Callback": ("callbacks.callback.Callback",),
}
HOOKED = tuple(_ROOTS)
_PACKAGES = ("pytorch_lightning", "lightning.pytorch")
_CALLS_BY_NAME = re.compile(r"getattr\(self, (?!['\"])")
_OTHER_BASES = ("object", "abc.ABC", "torch.nn.Module")
# Methods of a model that are no part of the classes above, or are required of others.
_STEPS = {
    "LightningModule": (
        *("training_step", "validation_step", "test_step", "predict_step", "forward"),
        *("configure_optimizers", "configure_callbacks", "optimizer_step", "lr_scheduler_step"),
        *("optimizer_zero_grad", "configure_gradient_clipping"),
    ),
}
_SHORT = {  # as people shorten them
    "val_loader": "val_dataloader",
    "valid_loader": "val_dataloader",
    "validation_loader": "val_dataloader",
    "val_dl": "val_dataloader",
    "eval_step": "validation_step",
    "evaluation_step": "validation_step",
}
_WORDS = {
    **dict.fromkeys(("val", "valid", "validate", "validating"), "validation"),
    **dict.fromkeys(("training", "trains"), "train"),
    **dict.fromkeys(("testing", "tests"), "test"),
    **dict.fromkeys(("begin", "begins", "starts", "started"), "start"),
    **dict.fromkeys(("ends", "ended", "finish", "finished"), "end"),
}
_ENDS = ("start", "end")
_NEAR = 0.9  # of two names: they differ in about one letter of ten
_PASSED_ON = ("no_grad", "inference_mode", "rank_zero_only", "override")
_TEXTS = (".py", ".ipynb", ".yaml", ".yml", ".toml")
_MOST_ENTRIES = 5_000  # of a folder that is looked through
_LEFT_OUT = ("site-packages", "node_modules", "runs")


def near_hooks(kind: str, class_path: str, found: Located, path: Sequence[str]) -> Iterator[str]:
    """A line for each method that nothing calls and that has the name of a hook but for a slip.

    Args:
        kind: LightningModule, LightningDataModule or Callback, of which the class is one.
        path: As `sys.path`, with the user's folder first.
    """
    lineage = _lineage(found, kind, path)
    if not lineage:
        return
    own = [it for it in lineage if not it.found.module.startswith(_PACKAGES)]
    names = {name for it in own for name in bound_in(it.definition)}
    inherited = {name for it in lineage if it not in own for name in bound_in(it.definition)}
    for at, method in ((it, method) for it in own for method in it.definition.body):
        if isinstance(method, ast.FunctionDef) and _is_plain(method):
            meant = meant_hook(method.name, kind, path)
            is_one = meant and meant not in names and method.name not in inherited
            if not is_one or is_spoken_of(method.name, path[0]):
                continue
            article = "an" if method.name[0] in "aeiou" else "a"
            place = place_of(at.found, method.lineno, path)
            has = f"{class_path} has {article} {method.name} ({place})"
            yield f"{has}, which nothing calls: {meant} may be meant"


def meant_hook(name: str, kind: str, path: Sequence[str]) -> str:
    """The hook that a name is meant to be; empty where it is one, or is near to none."""
    hooks = [*_STEPS.get(kind, ()), *_hooks(kind, tuple(path))]
    if name in hooks or name in GONE or name.startswith("_"):
        return ""
    short = _SHORT.get(name)
    if short is not None and short in hooks:
        return short
    forms = {_form(it): it for it in hooks}
    near = near_words(_form(name), forms, cutoff=_NEAR)
    meant = forms[near[0]] if near else {_sorted(it): it for it in hooks}.get(_sorted(name), "")
    # `save_checkpoint` may be a method of its own; `train_epoch_end` is on_train_epoch_end.
    is_alike = name.startswith("on") == meant.startswith("on") or _words(name)[-1] in _ENDS
    return meant if is_alike else ""


def is_spoken_of(name: str, folder: str) -> bool:
    """Whether a text of the project has a name elsewhere than behind `def`, or may have."""
    word = re.compile(rf"(?<![\w])(?<!def ){re.escape(name)}\b")
    try:
        return any(word.search(it.read_text("utf-8", "replace")) for it in _texts(Path(folder)))
    except (_TooManyError, OSError):
        return True


def _texts(folder: Path) -> Iterator[Path]:
    """Those of a project, without what is installed or was trained in it."""
    seen = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [it for it in folders if it[0] != "." and it not in _LEFT_OUT]
        seen += len(files) + len(folders)
        if seen > _MOST_ENTRIES:
            raise _TooManyError
        yield from (Path(place, it) for it in files if it.endswith(_TEXTS))


class _TooManyError(Exception):
    """A folder of data: not all of it is looked through."""


@dataclass(frozen=True)
class _Base:
    found: Located
    definition: ast.ClassDef


def _lineage(found: Located | None, kind: str, path: Sequence[str]) -> list[_Base]:
    """The class and its bases below Lightning's root; none where one is not known.

    Others may call what nothing here calls.
    """
    definition = found.definition if found else None
    if found is None or found.names is None or not isinstance(definition, ast.ClassDef):
        return []
    is_open = definition.decorator_list or definition.keywords
    if is_open or _CALLS_BY_NAME.search(ast.unparse(definition)):
        return []
    if not found.module.startswith(_PACKAGES):
        module = find_module(found.module, path)[0]
        if module is None or not is_own(module.file, path[0]):
            return []
    lineage = [_Base(found, definition)]
    for base in map(ast.unparse, definition.bases):
        written = full_name(base, found.names.imports)
        if written in _OTHER_BASES or _is_root(written, kind):
            continue
        above = _lineage(locate(f"{found.module}.{base}", path), kind, path)
        if not above:
            return []
        lineage += above
    return lineage


def _is_root(written: str, kind: str) -> bool:
    return written.startswith(("pytorch_lightning", "lightning")) and written.endswith(f".{kind}")


def _is_plain(method: ast.FunctionDef) -> bool:
    """Whether nothing but itself makes it what it is, as a property is made."""
    decorators = (ast.unparse(it).partition("(")[0] for it in method.decorator_list)
    return all(it.rpartition(".")[2] in _PASSED_ON for it in decorators)


@lru_cache(maxsize=8)
def _hooks(kind: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """The methods of Lightning's own classes; none where its text is not found."""
    names: dict[str, None] = {}
    for root in _ROOTS.get(kind, ()):
        classes = (locate(f"{package}.{root}", path) for package in _PACKAGES)
        for found in [it for it in classes if it and isinstance(it.definition, ast.ClassDef)][:1]:
            own = found.definition.body if found.definition else ()
            names.update((it.name, None) for it in own if isinstance(it, ast.FunctionDef))
    return tuple(it for it in names if not it.startswith("_"))


def _form(name: str) -> str:
    """One form of all ways to write a name: `onValEpochEnds` is `onvalidationepochend`."""
    return "".join(_words(name))


def _sorted(name: str) -> str:
    return "".join(sorted(_words(name)))


def _words(name: str) -> list[str]:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    said = [_WORDS.get(it, it) for it in words if it]
    if said[:1] == ["on"]:
        said = ["batch" if it == "step" else it for it in said]
    return said
