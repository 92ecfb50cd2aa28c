"""Callbacks that watch a metric which the model does not log, as far as its text tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from hpc_train.config.class_kind import locate
from hpc_train.config.load import LoadedConfig
from hpc_train.config.refused_callbacks import is_lightnings
from hpc_train.config.specs import INIT_ARGS, is_object, read_object
from hpc_train.config.words import did_you_mean

_GIVEN = ("epoch", "step")  # ModelCheckpoint knows these beside what is logged
MADE_OF = ("", "_step", "_epoch")  # lightning/pytorch, _ResultMetric: on_step with on_epoch


def monitor_notes(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """A line for each `monitor` that the model does not log.

    Lightning tells it at the end of an epoch. None where the text does not give every name; where a
    callback of the user's own may log it, one slip away from a name is told alone.
    """
    callbacks = loaded.config.trainer.get("callbacks") or []
    class_path, _ = read_object(loaded.config.model, "model", loaded.origins)
    found = locate(class_path, path)
    if (
        not isinstance(callbacks, list)
        or not found
        or not isinstance(found.definition, ast.ClassDef)
    ):
        return
    if not (names := logged_names(found.definition)):
        return
    known = {*_GIVEN, *(f"{name}{end}" for name in names for end in MADE_OF)}
    others = [it for it in callbacks if not lightnings_callback(it, path)]
    for index, spec in enumerate(callbacks):
        monitor = spec.get(INIT_ARGS, {}).get("monitor") if is_object(spec) else None
        if not isinstance(monitor, str) or monitor in known:
            continue
        near = did_you_mean(monitor, sorted(names), cutoff=0.8)
        if near or not others:
            near = near or did_you_mean(monitor, sorted(names)) or "name one of them"
            key = f"trainer.callbacks.{index}.{INIT_ARGS}.monitor"
            logs = f"{class_path} logs {', '.join(sorted(names))}"
            said = f"{key} is {monitor}, and {logs}: {near}"
            yield f"{loaded.origins.prefix(key)}{said}"


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
