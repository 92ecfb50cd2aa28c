"""Two callbacks of one class whose states would be saved under one name, which Lightning refuses.

Source: `_validate_callbacks_list` of pytorch_lightning/trainer/connectors/callback_connector.py;
`Callback.state_key` is the class's name unless a class has its own, as EarlyStopping and
ModelCheckpoint (pytorch_lightning/callbacks).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.fit.refused_callbacks import is_lightnings, with_bases
from hpc_train.config.fit.silent_callbacks import lightnings_callback
from hpc_train.config.load import LoadedConfig
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.class_kind import derives_from, locate, method_of, place_of
from hpc_train.config.python_text.method_signatures import methods_of
from hpc_train.config.python_text.modules import bound_in
from hpc_train.config.specs import callbacks_of, is_object, read_object

_KEY, _STATE = "state_key", "state_dict"
_CHECKPOINT = "ModelCheckpoint"
_TRIGGERS = ("every_n_train_steps", "every_n_epochs", "train_time_interval")
_KEYED_BY = {"EarlyStopping": ("monitor",), _CHECKPOINT: ("monitor", *_TRIGGERS)}
_OTHERWISE = {
    "EarlyStopping": "leave one of the two out, or give it another monitor",
    _CHECKPOINT: "leave one of the two out (save_top_k keeps more than one model), or give it"
    " another monitor or every_n_epochs",
}


def same_states(loaded: LoadedConfig, path: Sequence[str]) -> tuple[str, str, str] | None:
    """The key of the second of them, what is wrong, and what to write.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    seen: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for key, spec in callbacks_of(loaded.config.trainer):
        if not is_object(spec):
            continue
        class_path, arguments = read_object(spec, key, loaded.origins)
        kind = lightnings_callback(spec, path)
        name = lightnings_key(kind, arguments) or _classes_key(class_path, path)
        first, others = seen.setdefault(name, (key, arguments))
        if not name or first == key:
            continue
        at = _place(first, loaded.origins)
        said = f"is {class_path} once more, as {first}{at}: the states of both would be saved under"
        said += " one name, which Lightning refuses"
        hint = _OTHERWISE.get(kind) or _hint(class_path, others, arguments, path)
        return key, said, hint
    return None


def lightnings_key(kind: str, arguments: Mapping[str, Any]) -> str:
    """The `state_key` of Lightning's own that have one by their arguments; empty of another."""
    if kind not in _KEYED_BY:
        return ""
    values = {it: arguments.get(it) or 0 for it in _KEYED_BY[kind]}
    if kind == _CHECKPOINT and all(arguments.get(it) is None for it in _TRIGGERS):
        values["every_n_epochs"] = 1  # as its __init__ has it where none is given
    return f"{kind}{values | {'mode': arguments.get('mode') or 'min'}}"


def _classes_key(class_path: str, path: Sequence[str]) -> str:
    """The class of one that surely keeps a state under its class's name; empty of another."""
    return class_path if _has_the_classes_key(class_path, path) else ""


def _has_the_classes_key(class_path: str, path: Sequence[str]) -> bool:
    found = locate(class_path, path)
    if found is None or derives_from(found, "Callback", path) is not True:
        return False
    state = method_of(class_path, _STATE, path)
    if state is None or is_lightnings(state[0].module):
        return False
    own = [it for it in with_bases(found, path) if not is_lightnings(it.module)]
    classes = [it.definition for it in own if isinstance(it.definition, ast.ClassDef)]
    bases = [base for it in classes for base in it.bases]
    # Of Lightning's classes each but Callback may have a state_key of its own.
    known = {it.name for it in classes} | {"Callback"}
    if any(ast.unparse(it).rpartition(".")[2] not in known for it in bases):
        return False
    return not any(
        _KEY in bound_in(it) or _KEY in ast.unparse(it) or it.keywords or it.decorator_list
        for it in classes
    )


def _place(key: str, origins: Origins) -> str:
    place = origins.prefix(key).removesuffix(": ")
    return f" ({place})" if place else ""


def _hint(
    class_path: str, first: Mapping[str, Any], second: Mapping[str, Any], path: Sequence[str]
) -> str:
    names = [it for it in {**first, **second} if first.get(it, ...) != second.get(it, ...)]
    found = locate(class_path, path)
    definition = found.definition if found else None
    if not names or found is None or not isinstance(definition, ast.ClassDef):
        return "leave one of the two out"
    start = methods_of(definition).get("__init__")
    kept = {
        it.attr
        for it in ast.walk(start or ast.Pass())
        if isinstance(it, ast.Attribute) and isinstance(it.ctx, ast.Store)
    }
    name = next((it for it in names if it in kept), names[0])
    keep = "" if name in kept else f"keep self.{name} = {name} in __init__, and "
    place = place_of(found, definition.lineno, path)
    own = f'@property, and below it def {_KEY}(self): return f"{definition.name}{{self.{name}}}"'
    return f"leave one of the two out, or {keep}write in the class ({place}): {own}"
