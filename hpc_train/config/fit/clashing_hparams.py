"""An argument that model and data both save for the loggers, with two values, which is refused.

Source: `_log_hyperparams` of pytorch_lightning/loggers/utilities.py, as a fit begins with a logger.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpc_train.config.fit.late_loaders import surely_run
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.method_signatures import methods_of
from hpc_train.config.specs import read_object

_SAVES = "save_hyperparameters"
_ROOTS = {"model": "LightningModule", "data": "LightningDataModule"}
NOT_LOGGED = f"self.{_SAVES}(logger=False)"
# What a rank gives by itself where the config is silent.
_FILLED_IN = ("batch_size", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor")


@dataclass(frozen=True, slots=True)
class _Saved:
    """What a class surely saves of its arguments.

    Attributes:
        place: Of the call.
        values: By argument: its value, and whether that is its default.
    """

    place: str
    values: Mapping[str, tuple[Any, bool]]


def clashing_hparams(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The key of each such argument, what is wrong, and what to write; what is not sure is not.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    config = loaded.config
    if not config.loggers or config.trainer.get("enable_autolog_hparams") is False:
        return
    model, data = (_saved_by(it, loaded, path) for it in _ROOTS)
    if model is None or data is None:
        return
    for name in (it for it in data.values if it in model.values):
        (own, of_model), (other, of_data) = model.values[name], data.values[name]
        if own == other:
            continue
        key, there = ("model", "data") if of_data and not of_model else ("data", "model")
        here, elsewhere = (own, other) if key == "model" else (other, own)
        is_default = of_model if key == "data" else of_data
        full = f"{there}.init_args.{name}"
        default = f"{there} has {elsewhere!r} by default" if is_default else f"{full} {elsewhere!r}"
        said = f"is {here!r}, and {default}: both save their arguments for the loggers"
        said += f" ({model.place}, {data.place}), which Lightning refuses where they differ"
        value = str(here).lower() if isinstance(here, bool) else here
        hint = f"write {full}={value}, the same value, or {NOT_LOGGED} in one of the two places"
        yield f"{key}.init_args.{name}", said, hint


def _saved_by(key: str, loaded: LoadedConfig, path: Sequence[str]) -> _Saved | None:
    class_path, given = read_object(getattr(loaded.config, key), key, loaded.origins)
    found = locate(class_path, path)
    call = _call_in(found, _ROOTS[key]) if found else None
    if found is None or call is None or not isinstance(found.definition, ast.ClassDef):
        return None
    start = methods_of(found.definition)["__init__"]
    changed = {
        it.id
        for it in ast.walk(start)
        if isinstance(it, ast.Name) and not isinstance(it.ctx, ast.Load)
    }
    values = {
        name: told
        for name, default in _arguments(start)
        if name not in changed and (told := _value(name, default, given, key))
    }
    return _Saved(place_of(found, call.lineno, path), values)


def _call_in(found: Located, root: str) -> ast.Call | None:
    """The one call in `__init__`, of all arguments, that each object comes to."""
    definition = found.definition
    if not isinstance(definition, ast.ClassDef) or definition.decorator_list or definition.keywords:
        return None
    bases = [ast.unparse(it).rpartition(".")[2] for it in definition.bases]
    start = methods_of(definition).get("__init__")
    text = ast.unparse(definition)
    other = text.count(_SAVES) != 1 or "_log_hyperparams" in text or "hparams_initial" in text
    if bases != [root] or start is None or start.decorator_list or other:
        return None
    for statement in surely_run(start):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and ast.unparse(call) == f"self.{_SAVES}()":
            return call
    return None


def _arguments(start: ast.FunctionDef) -> list[tuple[str, ast.expr | None]]:
    """Each argument with its default."""
    own = [*start.args.posonlyargs, *start.args.args][1:]
    defaults = [*[None] * (len(own) - len(start.args.defaults)), *start.args.defaults]
    named = [(it.arg, default) for it, default in zip(own, defaults, strict=False)]
    kept = zip(start.args.kwonlyargs, start.args.kw_defaults, strict=True)
    return [*named, *((it.arg, default) for it, default in kept)]


def _value(
    name: str, default: ast.expr | None, given: Mapping[str, Any], key: str
) -> tuple[Any, bool] | None:
    """A plain value that the argument surely has, and whether it is its default."""
    if name in given:
        is_plain = isinstance(given[name], bool | int | float | str)
        return (given[name], False) if is_plain else None
    if key == "data" and name in _FILLED_IN:
        return None
    try:
        value = ast.literal_eval(default) if default is not None else ...
    except ValueError:
        return None
    return (value, True) if isinstance(value, bool | int | float | str) else None
