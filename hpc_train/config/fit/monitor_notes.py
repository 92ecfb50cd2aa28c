"""Callbacks and schedules that wait for a metric which the model does not log, by its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hpc_train.config.fit.logged_texts import Logged, texts_logged
from hpc_train.config.fit.monitor_modes import wants_the_highest
from hpc_train.config.fit.near_metrics import metrics_in, near_metrics, of_stage, step_of
from hpc_train.config.fit.rate_names import may_be_a_rate
from hpc_train.config.fit.silent_callbacks import is_silent, lightnings_callback, logs_rates_alone
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.method_signatures import hands_itself_on, methods_of
from hpc_train.config.python_text.whole_class import with_its_bases
from hpc_train.config.specs import INIT_ARGS, callbacks_of, is_object, read_object
from hpc_train.config.words import did_you_mean

_GIVEN = ("epoch", "step")  # ModelCheckpoint knows these beside what is logged
_OF_LOADER = "/dataloader_idx_"  # behind what is logged of one of several loaders
_PUTS = re.compile(r"(?:callback|logged)_metrics(?:\[[^\]\n]+\] [+|]?=|\.(?:update|setdefault)\()")
_MOST_OTHERS = 2
MADE_OF = ("", "_step", "_epoch")  # lightning/pytorch, _ResultMetric: on_step with on_epoch


@dataclass(frozen=True)
class _Model:
    """A model whose text gives every name that it logs, or its form.

    Attributes:
        logged: What it logs, sorted.
        is_alone: Whether nothing else may log, but for the rates.
        logs_rates: Whether a callback of Lightning's logs the learning rates.
    """

    class_path: str
    found: Located
    logged: Sequence[Logged]
    is_alone: bool
    logs_rates: bool
    path: Sequence[str]

    def told(self, metric: Any, form: str, highest: str = "") -> str:
        """What it logs, and what to write; empty where `metric` is logged, or may be.

        Args:
            metric: What is waited for.
            form: How another one is written in its place; without it nothing is to be logged.
            highest: What is written beside one of which the highest is the best.
        """
        if not isinstance(metric, str) or self._logs(metric.partition(_OF_LOADER)[0]):
            return ""
        if self.logs_rates and may_be_a_rate(metric):
            return ""
        names = self.names
        near = did_you_mean(metric, names, cutoff=0.8)
        if not near and not self.is_alone:
            return ""
        near = near_metrics(metric, names) or self._written(metric, form, highest)
        return f"{self.class_path} logs {', '.join(self._shown)}: {near}"

    @property
    def names(self) -> list[str]:
        """What it logs without an open part."""
        return list(dict.fromkeys(it.shown for it in self.logged if not it.is_open))

    @property
    def _shown(self) -> list[str]:
        return list(dict.fromkeys(it.shown for it in self.logged))

    def _logs(self, metric: str) -> bool:
        """Whether it logs a metric of this name, or may."""
        patterns = {it.pattern for it in self.logged}
        whole = (re.fullmatch(f"{it}(?:{'|'.join(MADE_OF)})", metric) for it in patterns)
        return metric in _GIVEN or any(whole)

    def _written(self, metric: str, form: str, highest: str) -> str:
        if not form:
            return "name one of them"
        step = step_of(metric)
        definition = self.found.definition
        assert isinstance(definition, ast.ClassDef)
        method = methods_of(definition).get(step)
        place = f" ({place_of(self.found, method.lineno, self.path)})" if method else ""
        log = f'self.log("{metric}", ...)' + (f" in {step}{place}" if step else "")
        others = [
            form.format(it) + (highest if wants_the_highest(it) else "")
            for it in of_stage(metric, self.names)
        ]
        return f"write {', or '.join([*others[:_MOST_OTHERS], log])}"


def monitor_notes(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """A line for each metric that is waited for, or is in a file's name, and is not logged.

    Lightning tells it at the end of an epoch, and writes 0 into a file's name. None where the text
    does not give every name; where a callback of the user's own may log it, one slip away from a
    name is told alone.
    """
    callbacks = callbacks_of(loaded.config.trainer)
    if not (model := _model(loaded, [spec for _, spec in callbacks], path)):
        return
    for callback, spec in callbacks:
        given = spec.get(INIT_ARGS, {}) if is_object(spec) else {}
        highest = "" if given.get("mode") == "max" else " and mode: max"
        waits = [("monitor", given.get("monitor"), "monitor: {}")]
        if lightnings_callback(spec, path) == "ModelCheckpoint":
            names = metrics_in(str(given.get("filename", "")))
            waits += [("filename", it, "") for it in names]
        for argument, metric, form in waits:
            if told := model.told(metric, form, highest):
                key = f"{callback}.{INIT_ARGS}.{argument}"
                verb = "is" if argument == "monitor" else "has"
                yield f"{loaded.origins.prefix(key)}{key} {verb} {metric}, and {told}"
    definition = model.found.definition
    assert isinstance(definition, ast.ClassDef)
    highest = "" if "'max'" in ast.unparse(definition) else ' and mode="max" for the schedule'
    for line, metric in _of_schedules(definition):
        if told := model.told(metric, '"monitor": "{}"', highest):
            where = place_of(model.found, line, path)
            yield f"{where}: the schedule's monitor is {metric}, and {told}"


def _model(loaded: LoadedConfig, callbacks: Sequence[Any], path: Sequence[str]) -> _Model | None:
    """None where the text does not give every name that it logs."""
    class_path, _ = read_object(loaded.config.model, "model", loaded.origins)
    found = locate(class_path, path)
    if not found or not isinstance(found.definition, ast.ClassDef):
        return None
    whole = with_its_bases(found, path)
    if whole is None or not (logged := _logged(whole)):
        return None
    rates = [logs_rates_alone(it, path) for it in callbacks]
    others = [it for it, is_known in zip(callbacks, rates, strict=True) if not is_known]
    is_alone = all(is_silent(it, path) for it in others)
    is_alone = is_alone and "configure_callbacks" not in ast.unparse(whole)
    known = sorted(logged, key=lambda it: it.shown)
    return _Model(class_path, found, known, is_alone, any(rates), path)


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


def _logged(definition: ast.ClassDef) -> list[Logged]:
    """What the methods of a class log; empty where the text does not give every name."""
    logged: list[Logged] = []
    for _, call in _calls(definition):
        if (texts := texts_logged(call, definition)) is None:
            return []
        logged += texts
    return logged


def logged_places(definition: ast.ClassDef) -> dict[str, list[tuple[str, int]]]:
    """What is logged by plain names -> the methods that log it, each with its line.

    Empty where a name is no plain text, or something else may log as well.
    """
    places: dict[str, list[tuple[str, int]]] = {}
    for method, call in _calls(definition):
        if (names := _literal_names(call)) is None:
            return {}
        for name in names:
            places.setdefault(name, []).append((method, call.lineno))
    return places


def _calls(definition: ast.ClassDef) -> list[tuple[str, ast.Call]]:
    """Its calls of self.log and self.log_dict with their methods; none where it logs otherwise."""
    if len(definition.bases) != 1 or not ast.unparse(definition.bases[0]).endswith(
        "LightningModule"
    ):
        return []
    if _logs_otherwise(definition) or hands_itself_on(definition):  # which may log in its name
        return []
    return [
        (statement.name if isinstance(statement, ast.FunctionDef) else "", call)
        for statement in definition.body
        for call in ast.walk(statement)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("self.log", "self.log_dict")
    ]


def _logs_otherwise(definition: ast.ClassDef) -> bool:
    """Whether it keeps `self.log` under another name, or puts values where metrics are kept."""
    called = {id(it.func) for it in ast.walk(definition) if isinstance(it, ast.Call)}
    held = [it for it in ast.walk(definition) if isinstance(it, ast.Attribute)]
    kept = [it for it in held if ast.unparse(it) in ("self.log", "self.log_dict")]
    is_kept = any(id(it) not in called for it in kept)
    return is_kept or _PUTS.search(ast.unparse(definition)) is not None


def _literal_names(call: ast.Call) -> list[str] | None:
    """The names that a call logs; None where one is no plain text."""
    named = [it.value for it in call.keywords if it.arg in ("name", "dictionary")]
    first = next(iter([*call.args[:1], *named]), None)
    keys = first.keys if isinstance(first, ast.Dict) else [first]
    texts = [it.value for it in keys if isinstance(it, ast.Constant) and isinstance(it.value, str)]
    return texts if len(texts) == len(keys) else None
