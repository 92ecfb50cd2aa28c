"""Who makes which part of Lightning's checkpoint, for a part that cannot be written."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from hpc_train.training.private.lightning import pl
from hpc_train.training.resume.unsavable import Author, class_name

_HOOK = "on_save_checkpoint"
_HYPERPARAMETERS = {"hyper_parameters": "model", "datamodule_hyper_parameters": "data"}
# Keys under which Lightning keeps a list (`dump_checkpoint`).
_LISTS = ("optimizer_states", "lr_schedulers")


def author_in_trainer(trainer: pl.Trainer, keys: Sequence[Any]) -> Author:
    """Who puts into the checkpoint what stands there under `keys`."""
    if len(keys) < 2 or keys[0] != "model":
        return Author()
    owners: Any = trainer
    model, data = trainer.lightning_module, owners.datamodule
    key, below = keys[1], keys[2] if len(keys) > 2 else None
    if key in _HYPERPARAMETERS:
        owner = model if _HYPERPARAMETERS[key] == "model" else data
        return _made_by("save_hyperparameters", owner)
    if key == "state_dict":
        return _made_by("state_dict", model)
    if key == "callbacks":
        found = [item for item in owners.callbacks if item.state_key == below]
        return _made_by("state_dict", found[0]) if found else Author()
    if key in _LISTS and isinstance(below, int):
        owner = trainer.optimizers if key == "optimizer_states" else _schedulers(trainer)
        return _made_by("state_dict", owner[below]) if below < len(owner) else Author()
    if data is not None and key == type(data).__qualname__:
        return _made_by("state_dict", data)
    hooks = list(_with_hook([model, *owners.callbacks]))
    if len(hooks) != 1:
        names = " or ".join(class_name(type(item)) for item in hooks)
        return Author(f"{_HOOK} of {names}" if names else "")
    return _made_by(_HOOK, hooks[0])


def _schedulers(trainer: pl.Trainer) -> list[Any]:
    return [config.scheduler for config in trainer.lr_scheduler_configs]


def _with_hook(owners: Sequence[Any]) -> Iterator[Any]:
    """Those whose class has the hook, and not from Lightning's base alone."""
    plain = (pl.LightningModule.on_save_checkpoint, pl.Callback.on_save_checkpoint)
    for owner in owners:
        if getattr(type(owner), _HOOK) not in plain:
            yield owner


def _made_by(method: str, owner: Any) -> Author:
    """`method of nets.Net`; its place only where the class, and no library, defines it."""
    own = vars(type(owner)).get(method)
    where = ""
    if inspect.isfunction(own):
        where = f"{own.__code__.co_filename}:{own.__code__.co_firstlineno}"
    return Author(f"{method} of {class_name(type(owner))}", where)
