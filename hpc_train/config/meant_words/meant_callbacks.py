"""Callbacks of Lightning's that stand in a section, and where they belong.

`checkpoint` says when a run saves what it goes on from; the best models are a ModelCheckpoint's.
Source: https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.ModelCheckpoint.html
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from hpc_train.config.keys import SECTIONS
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, is_object

_OF_MODELS = (  # arguments of a ModelCheckpoint
    *("monitor", "mode", "save_top_k", "save_last", "dirpath", "filename", "save_weights_only"),
    *("every_n_epochs", "every_n_train_steps", "save_on_train_epoch_end", "save_on_exception"),
    *("auto_insert_metric_name", "enable_version_counter", "verbose"),
)
# As others call the section, or the callback.
_SAME = ("ckpt", "checkpoints", "checkpointing", "model_checkpoint", "checkpoint_callback")
_BELOW = f"under {INIT_ARGS}"
_EARLY = ("early_stopping", "earlystopping", "early_stop")
# Arguments that an EarlyStopping alone has, and those of both.
_OF_EARLY = ("patience", "min_delta", "stopping_threshold", "divergence_threshold", "check_finite")
_OF_BOTH = ("monitor", "mode", "strict", "verbose")
_ALONE_IS_ANOTHERS = ("every_n_epochs", "every_n_train_steps", "verbose", "strict")


def meant_callback(
    full: str, values: Mapping[str, Any], origins: Origins
) -> tuple[str, tuple[str, ...]]:
    """What to write, and the keys beside it that the same mend is for; nothing of another key.

    Args:
        full: `checkpoint.monitor`, or a section of another name that has such keys alone.
        values: The whole config.
    """
    section, _, key = full.rpartition(".")
    if full == "mode" and values.get(full) in ("max", "min"):
        return f"write it {_BELOW} of the ModelCheckpoint or EarlyStopping that it is for", ()
    if not section:
        given = None if origins.is_typed(full) else values.get(full)
        return ("" if given is None else _of_section(key.lower(), given, values)), ()
    held = values.get(section)
    if section != "checkpoint" or not isinstance(held, Mapping):
        return "", ()
    names = {it: it.replace("-", "_") for it in held if it not in SECTIONS[section]}
    if not is_object(held):
        names = {it: name for it, name in names.items() if name in _OF_MODELS}
    if key not in names:
        return "", ()
    if origins.is_typed(full):
        return f"write it {_BELOW} of a ModelCheckpoint in trainer.callbacks", ()
    in_file = {it: names[it] for it in names if not origins.is_typed(f"{section}.{it}")}
    given = {name: held[it] for it, name in in_file.items()}
    hint = _as_callback(given, values)
    if [*given] == ["every_n_train_steps"]:  # either may be meant
        hint = f"write checkpoint.every_n_steps for what a run goes on from; for a model, {hint}"
    return hint, tuple(f"{section}.{it}" for it in in_file if it != key)


def callback_of_trainer(
    name: str, arguments: Mapping[str, Any], *, is_typed: bool
) -> tuple[str, tuple[str, ...]]:
    """What to write for a key of `trainer` that is a callback, or an argument of one; else empty.

    Args:
        arguments: The whole of `trainer`.

    Returns:
        Also the other keys there that the same mend is for.
    """
    values = {"trainer": arguments}
    told = _of_section(name.lower(), arguments.get(name), values)
    others: tuple[str, ...] = ()
    if not told:
        is_early = any(it in _OF_EARLY for it in arguments)
        wanted = (*_OF_EARLY, *_OF_BOTH) if is_early else _OF_MODELS
        given = {it: value for it, value in arguments.items() if it in wanted}
        if name not in given or all(it in _ALONE_IS_ANOTHERS for it in given):
            return "", ()
        others = tuple(it for it in given if it != name)
        kind = "EarlyStopping" if is_early else "ModelCheckpoint"
        is_there = any(kind in str(it) for it in arguments.get("callbacks") or ())
        needed = {"monitor": "val_loss"} if is_early and not is_there else {}
        told = _as_callback({**needed, **given}, values, kind)
    start = "write below trainer: callbacks: "
    if is_typed and told.startswith(start):
        told = f"write {shlex.quote(f'trainer.callbacks={told.removeprefix(start)}')}"
    return told, others


def _of_section(name: str, given: Any, values: Mapping[str, Any]) -> str:
    """Of a section that is a callback's by its name, and by what it has."""
    if name in _EARLY and given is not False:
        has = given if isinstance(given, Mapping) else {}
        return _as_callback(has or {"monitor": "val_loss", "patience": 3}, values, "EarlyStopping")
    of_all = isinstance(given, Mapping) and all(it in _OF_MODELS for it in given)
    is_callback = name in _SAME and given and (is_object(given) or of_all)
    return _as_callback(given, values) if is_callback else ""


def _as_callback(
    given: Mapping[str, Any], values: Mapping[str, Any], name: str = "ModelCheckpoint"
) -> str:
    """What to write, with the callback as the config can have it.

    Args:
        given: The callback as an object of a config, or the arguments of Lightning's own.
    """
    from hpc_train.config.whole_forms import flow  # on the way to an error

    form = {**given}
    arguments = form.get(INIT_ARGS) if CLASS_PATH in form else form
    if not is_object(form):
        form = {CLASS_PATH: of_project(f"pytorch_lightning.callbacks.{name}"), INIT_ARGS: form}
    is_same = str(form.get(CLASS_PATH)).rpartition(".")[2] == name
    script, trainer = values.get("script"), values.get("trainer")
    if isinstance(script, Mapping) and script.get("path") and isinstance(arguments, Mapping):
        call = ", ".join(f"{it}={value!r}" for it, value in arguments.items())
        return f"the script gives its callbacks itself: of Lightning, {name}({call})"
    callbacks = trainer.get("callbacks") if isinstance(trainer, Mapping) else None
    for number, it in enumerate(callbacks if isinstance(callbacks, list) else []):
        named = str(it.get(CLASS_PATH)) if isinstance(it, Mapping) else ""
        if is_same and arguments and named.rpartition(".")[2] == name:
            below = f"trainer.callbacks.{number}.{INIT_ARGS}"
            return f"write below {below}: {flow(arguments)[1:-1]}"
    if callbacks:
        return f"add {flow(form)} to trainer.callbacks"
    listed = f"callbacks: [{flow(form)}]"
    return f"write below trainer: {listed}" if trainer else f"write trainer: {{{listed}}}"
