"""What a training loop does wrongly with a Session, refused with what to write."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, Dataset

from hpc_train.config.schema import CheckpointConfig
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError, RunFailedError

_RESTORE = "write session.restore(model=model, optimizer=optimizer)"
_STATES = ("state_dict", "load_state_dict")
_DUE = (
    "put optimizer.step(), optimizer.zero_grad() and session.stepped() under"
    " `if session.step_is_due:`"
)
# What other libraries call what a Session does by itself.
_BY_ITSELF = {
    **dict.fromkeys(("save", "save_checkpoint", "checkpoint"), "session.stepped() saves, when due"),
    **dict.fromkeys(("load", "load_checkpoint", "resume"), "write session.restore(model=model)"),
    **dict.fromkeys(
        ("prepare", "fit", "train"), "the loop is your own: see hpc_train.Session.open"
    ),
    **dict.fromkeys(("epoch", "current_epoch"), "write: for epoch in session.epochs(10):"),
    **dict.fromkeys(("global_step", "steps"), "write session.step"),
    **dict.fromkeys(("loader", "dataloader"), "write: for batch in session.batches(loader):"),
}


def check_opened(
    global_batch_size: object,
    seed: object,
    micro_batch_size: object,
    run_dir: object,
    checkpoint: object,
) -> None:
    """Refuse an argument of `Session.open` that is of another kind.

    Raises:
        ConfigError: naming it.
    """
    _check_count("global_batch_size", global_batch_size, least=1)
    _check_count("seed", seed, least=0)
    if micro_batch_size is not None:
        _check_count("micro_batch_size", micro_batch_size, least=1)
    if not isinstance(run_dir, str | Path | None):
        raise ConfigError(f"run_dir is {run_dir!r}, no path", "write run_dir='runs/x'")
    if not isinstance(checkpoint, CheckpointConfig | None):
        given = f"({_shown(checkpoint)})" if isinstance(checkpoint, Mapping) else "(...)"
        raise ConfigError(
            f"checkpoint is of class {type(checkpoint).__name__}, and no CheckpointConfig",
            f"write checkpoint=hpc_train.config.schema.CheckpointConfig{given}",
        )


def check_objects(objects: Mapping[str, Any]) -> None:
    """Refuse what has no state to keep, and nothing at all.

    Raises:
        ConfigError: naming it.
    """
    if not objects:
        raise ConfigError("session.restore() is given nothing to keep", _RESTORE)
    for name, item in objects.items():
        if missing := [method for method in _STATES if not callable(getattr(item, method, None))]:
            lacks = f"has no {' and no '.join(missing)}"
            raise ConfigError(
                f"{name} is of class {type(item).__name__}, which {lacks}",
                "leave it out: session.step and session.epochs() go on by themselves; what else is "
                "to be kept goes into an object with both methods",
            )


def check_epochs(count: object) -> None:
    """Refuse what is no number of epochs.

    Raises:
        ConfigError: naming it.
    """
    _check_count("session.epochs: count", count, least=0)


def check_entered(method: str, *, entered: bool) -> None:
    """Refuse to train outside of `with`: no stop would be heeded, and no end told.

    Raises:
        ConfigError: naming the method.
    """
    if not entered:
        raise ConfigError(
            f"session.{method}() is used outside of the session's `with` block",
            "write: with hpc_train.Session.open(global_batch_size=64) as session:, and the loop"
            " in it",
        )


def check_restored(method: str, *, restored: bool) -> None:
    """Refuse to train what nothing keeps: it would begin anew after each stop, behind its steps.

    Raises:
        ConfigError: naming the method.
    """
    if not restored:
        raise ConfigError(
            f"session.{method}() is used without session.restore(): nothing of the training is"
            " kept, and after a stop it would begin anew",
            f"{_RESTORE} in front of the loop, with whatever else has a state",
        )


def check_due(steps: int, *, drawn: int, accumulate: int) -> None:
    """Refuse more steps than the batches make: each would have a part of its global batch.

    A loop that counts by itself may have drawn a batch ahead, which is none too few.

    Args:
        steps: Of this attempt, with that at hand.
        drawn: Micro batches of it.
        accumulate: Micro batches that make a step.

    Raises:
        ConfigError: with what to write.
    """
    if 0 < drawn < steps * accumulate:
        raise ConfigError(
            f"session.stepped() is called behind {drawn} of the {steps * accumulate} micro batches"
            f" that make {_counted(steps)}: a step took a part of the global batch",
            _DUE,
        )


def early_step(name: str, steps: int, *, drawn: int, accumulate: int) -> ConfigError:
    """What is said of an optimizer's step in front of which too few micro batches were drawn.

    Args:
        name: Of the optimizer.
        steps: Of it in this attempt, with that at hand.
        drawn: Micro batches of this attempt.
        accumulate: Micro batches that make a step.
    """
    made = f"the {steps * accumulate} micro batches that make {_counted(steps)}"
    return ConfigError(
        f"{name} takes a step behind {drawn} of {made}: it has a part of the global batch", _DUE
    )


def _counted(steps: int) -> str:
    return "one step" if steps == 1 else f"{steps} steps"


def no_step(batches: int) -> RunFailedError:
    """What is said of an epoch after which not one step was counted."""
    return RunFailedError(
        f"{batches} batches of this rank and no session.stepped(): no step is counted, so nothing "
        "is saved and no stop heeded",
        "call session.stepped() after each optimizer.step()",
    )


def check_evaluated(loader: object) -> None:
    """Refuse what is no DataLoader.

    Raises:
        ConfigError: naming its class.
    """
    if not isinstance(loader, DataLoader):
        fix = "DataLoader(val_set, batch_size=64)" if isinstance(loader, Dataset) else "DataLoader"
        raise ConfigError(
            f"session.evaluation is given a {type(loader).__name__}, and needs a DataLoader",
            f"write session.evaluation({fix})" if fix != "DataLoader" else "hand over a DataLoader",
        )


def no_attribute(owner: type, name: str) -> AttributeError:
    """What Python says of an attribute that there is not, with what to write."""
    known = [it for it in dir(owner) if not it.startswith("_")]
    hint = _BY_ITSELF.get(name) or did_you_mean(name, [*known, "step"])
    told = f"{owner.__name__!r} object has no attribute {name!r}"
    return AttributeError(f"{told}: {hint}" if hint and not name.startswith("_") else told)


def _check_count(name: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        number = f"a whole number of {least} or more"
        raise ConfigError(f"{name} is {value!r}, and has to be {number}", f"write {_meant(value)}")


def _meant(value: object) -> str:
    """The number that a text or a float stands for; else an example."""
    try:
        return str(abs(int(float(str(value)))) or 1)
    except (ValueError, OverflowError):
        return "64, say"


def _shown(values: Mapping[Any, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
