"""Callbacks and schedules that wait for a metric which the model does not log, by its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hpc_train.config.class_kind import locate, place_of
from hpc_train.config.load import LoadedConfig
from hpc_train.config.method_signatures import methods_of
from hpc_train.config.refused_callbacks import is_lightnings
from hpc_train.config.specs import INIT_ARGS, is_object, read_object
from hpc_train.config.words import did_you_mean

_GIVEN = ("epoch", "step")  # ModelCheckpoint knows these beside what is logged
# A metric in the name of a model's file (lightning/pytorch, ModelCheckpoint).
_IN_NAMES = re.compile(r"\{([^{}:]+)")
MADE_OF = ("", "_step", "_epoch")  # lightning/pytorch, _ResultMetric: on_step with on_epoch


def monitor_notes(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """A line for each metric that is waited for, or is in a file's name, and is not logged.

    Lightning tells it at the end of an epoch, and writes 0 into a file's name. None where the text
    does not give every name; where a callback of the user's own may log it, one slip away from a
    name is told alone.
    """
    callbacks = loaded.config.trainer.get("callbacks") or []
    if not isinstance(callbacks, list):
        return
    class_path, _ = read_object(loaded.config.model, "model", loaded.origins)
    found = locate(class_path, path)
    if not found or not isinstance(found.definition, ast.ClassDef):
        return
    if not (names := logged_names(found.definition)):
        return
    others = [it for it in callbacks if not lightnings_callback(it, path)]
    for index, spec in enumerate(callbacks):
        given = spec.get(INIT_ARGS, {}) if is_object(spec) else {}
        waits = [("monitor", given.get("monitor"))]
        if lightnings_callback(spec, path) == "ModelCheckpoint":
            waits += [("filename", it) for it in _IN_NAMES.findall(str(given.get("filename", "")))]
        for argument, metric in waits:
            if told := _unlogged(metric, names, is_sure=not others):
                key = f"trainer.callbacks.{index}.{INIT_ARGS}.{argument}"
                verb = "is" if argument == "monitor" else "has"
                yield f"{loaded.origins.prefix(key)}{key} {verb} {metric}, and {class_path} {told}"
    for line, metric in _of_schedules(found.definition):
        if told := _unlogged(metric, names, is_sure=not others):
            where = place_of(found, line, path)
            yield f"{where}: the schedule's monitor is {metric}, and {class_path} {told}"


def _unlogged(metric: Any, names: set[str], *, is_sure: bool) -> str:
    """What is logged, and the nearest of it; empty where `metric` is, or may be.

    Args:
        is_sure: Whether nothing but the model may log.
    """
    known = {*_GIVEN, *(f"{name}{end}" for name in names for end in MADE_OF)}
    if not isinstance(metric, str) or metric in known:
        return ""
    near = did_you_mean(metric, sorted(names), cutoff=0.8)
    if not near and not is_sure:
        return ""
    near = near or did_you_mean(metric, sorted(names)) or "name one of them"
    return f"logs {', '.join(sorted(names))}: {near}"


def _of_schedules(definition: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """The line and the metric of each `"monitor": "val_loss"` that configure_optimizers returns."""
    method = methods_of(definition).get("configure_optimizers")
    for node in ast.walk(method) if method is not None else ():
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            texts = [it.value for it in (key, value) if isinstance(it, ast.Constant)]
            if len(texts) == 2 and texts[0] == "monitor" and isinstance(texts[1], str):
                yield value.lineno, texts[1]


def lightnings_callback(spec: Any, path: Sequence[str]) -> str:
    """The name of a callback's class where it is Lightning's own; empty for others."""
    found = locate(read_object(spec, "")[0], path) if is_object(spec) else None
    return found.name if found and is_lightnings(found.module) else ""


def logged_names(definition: ast.ClassDef) -> set[str]:
    """What the methods of a class log with self.log and self.log_dict; empty where it is unsure."""
    return set(logged_places(definition))


def logged_places(definition: ast.ClassDef) -> dict[str, list[tuple[str, int]]]:
    """The same by name -> the methods that log it, each with its line."""
    if len(definition.bases) != 1 or not ast.unparse(definition.bases[0]).endswith(
        "LightningModule"
    ):
        return {}
    places: dict[str, list[tuple[str, int]]] = {}
    for statement in definition.body:
        method = statement.name if isinstance(statement, ast.FunctionDef) else ""
        for call in (it for it in ast.walk(statement) if isinstance(it, ast.Call)):
            if any(isinstance(it, ast.Name) and it.id == "self" for it in call.args):
                return {}  # that may log in its name
            if ast.unparse(call.func) not in ("self.log", "self.log_dict"):
                continue
            if (names := _literal_names(call)) is None:
                return {}
            for name in names:
                places.setdefault(name, []).append((method, call.lineno))
    return places


def _literal_names(call: ast.Call) -> list[str] | None:
    """The names that a call logs; None where one is no plain text."""
    first = call.args[0] if call.args else None
    keys = first.keys if isinstance(first, ast.Dict) else [first]
    texts = [it.value for it in keys if isinstance(it, ast.Constant) and isinstance(it.value, str)]
    return texts if len(texts) == len(keys) else None
