"""Callbacks that wait for a metric of the validation, where the text tells that none will run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hpc_train.config.fit.misnamed_methods import renamed
from hpc_train.config.fit.monitor_notes import MADE_OF, logged_places
from hpc_train.config.fit.silent_callbacks import lightnings_callback
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import lacks_method, locate, method_of, place_of
from hpc_train.config.specs import INIT_ARGS, callbacks_of, is_object, read_object

_WAITING = ("EarlyStopping", "ModelCheckpoint")
_OF_VALIDATION = ("validation_", "on_validation_")
# With these a fit has other batches than those that limit_val_batches names.
_OVERRULES = ("fast_dev_run", "overfit_batches")
# Where these are written, EarlyStopping may never look, and end nothing.
_LOOKS_LATER = ("val_check_interval", "check_val_every_n_epoch")


@dataclass(frozen=True)
class Unrun:
    """A callback that waits for a metric that does not come.

    Attributes:
        key: Of its monitor.
        said: Behind the key.
        hint: What to write.
        is_sure: Whether the fit surely ends with an error.
    """

    key: str
    said: str
    hint: str
    is_sure: bool


def unrun_validations(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[Unrun]:
    """Each callback that waits for what the model logs in a validation that will not run."""
    trainer = loaded.config.trainer
    callbacks = callbacks_of(trainer)
    class_path, _ = read_object(loaded.config.model, "model", loaded.origins)
    model = locate(class_path, path)
    if any(trainer.get(it) for it in _OVERRULES):
        return
    if model is None or not isinstance(model.definition, ast.ClassDef):
        return
    why, fix = _no_validation(loaded, class_path, path)
    logged = _of_validation(model.definition) if why else {}
    text = ast.unparse(model.definition)
    is_sure = "configure_callbacks" not in text and "callback_metrics" not in text
    known = [lightnings_callback(it, path) for _, it in callbacks]
    for index, (callback, spec) in enumerate(callbacks):
        arguments = (spec.get(INIT_ARGS) or {}) if is_object(spec) else {}
        monitor = arguments.get("monitor")
        names = [it for it in logged if monitor in {f"{it}{end}" for end in MADE_OF}]
        if known[index] not in _WAITING or not names:
            continue
        method, line = logged[names[0]]
        where = f"{method} ({place_of(model, line, path)})"
        other = _of_training(model.definition)
        yield Unrun(
            f"{callback}.{INIT_ARGS}.monitor",
            f"is {monitor}, which {class_path} logs in {where}, and {why}: no validation runs",
            f"{fix}, or monitor: {other}" if other else fix,
            is_sure and all(known) and known[index] == _WAITING[0] and _ends(arguments, trainer),
        )


def _no_validation(loaded: LoadedConfig, model_path: str, path: Sequence[str]) -> tuple[str, str]:
    """Why surely no validation runs, and what to write; empty where one may."""
    limit = loaded.config.trainer.get("limit_val_batches")
    if isinstance(limit, (int, float)) and not isinstance(limit, bool) and limit == 0:
        return "trainer.limit_val_batches is 0", "leave trainer.limit_val_batches out"
    class_path, _ = read_object(loaded.config.data, "data", loaded.origins)
    found = locate(class_path, path)
    if found is None or not isinstance(found.definition, ast.ClassDef):
        return "", ""
    if not lacks_method(class_path, "val_dataloader", path):
        return "", ""
    fix = f"write def val_dataloader(self) in {class_path}"
    place = place_of(found, found.definition.lineno, path)
    said = f"{class_path} ({place}) has no val_dataloader"
    if of_model := method_of(model_path, "val_dataloader", path):
        there = place_of(of_model[0], of_model[1].lineno, path)
        said += f", and beside a DataModule that of {model_path} ({there}) is not asked"
        return said, f"move val_dataloader into {class_path}"
    return said, renamed("val_dataloader", found, cutoff=0.8) or fix


def _of_validation(definition: ast.ClassDef) -> dict[str, tuple[str, int]]:
    """What the class logs in a validation alone -> its method, and the line."""
    text = ast.unparse(definition)
    alone = {}
    for name, places in logged_places(definition).items():
        methods = [method for method, _ in places]
        if all(it.startswith(_OF_VALIDATION) and f".{it}(" not in text for it in methods):
            alone[name] = places[0]
    return alone


def _of_training(definition: ast.ClassDef) -> str:
    """A metric of training_step, a loss before others; empty where there is none."""
    names = [
        name
        for name, places in logged_places(definition).items()
        if any(method == "training_step" for method, _ in places)
    ]
    return min(names, key=lambda it: ("loss" not in it, it), default="")


def _ends(arguments: dict[str, Any], trainer: dict[str, Any]) -> bool:
    """Whether an EarlyStopping looks at the end of each epoch, and raises where nothing is."""
    looks = arguments.get("check_on_train_epoch_end")
    is_strict = arguments.get("strict", True) is True
    return is_strict and (looks is True or (looks is None and not {*_LOOKS_LATER} & {*trainer}))
