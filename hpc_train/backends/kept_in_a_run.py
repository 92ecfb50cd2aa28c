"""What a run keeps when it goes on, and what is said of a change that would make another one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpc_train.backends.lengthen import LENGTH_KEYS
from hpc_train.config.load import LoadedConfig
from hpc_train.errors import ConfigError, UsageError
from hpc_train.plan.plan import Plan
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus

KEPT = ("model", "data", "trainer", "seed", "reproducible", "global_batch_size", "script")
_OF_LENGTH = tuple(f"trainer.{name}" for name in LENGTH_KEYS)
_KEY = re.compile(rf"(?:^|: )((?:{'|'.join(KEPT)})(?:\.[\w.]+)?)(?=[: ])")
_MEANT = re.compile(r"did you mean '([\w.]+)\.(\w+)'")


def another_training(run: RunDir, before: LoadedConfig, loaded: LoadedConfig) -> ConfigError:
    """The refusal of a change that makes another training, by the keys that make it so.

    Args:
        before: The run's config as it is.
        loaded: With what was typed.
    """
    typed = [key for key in loaded.origins.typed() if key.split(".")[0] in KEPT]
    changed = [
        key
        for key in typed
        if key not in _OF_LENGTH
        and _value(before.composed.values, key) != _value(loaded.composed.values, key)
    ]
    # A section that was not there before is typed with its key.
    changed = [key for key in changed if not any(it.startswith(f"{key}.") for it in changed)]
    makes = "make" if len(changed) > 1 else "makes"
    return ConfigError(
        f"{', '.join(changed) or 'an override'} {makes} another training: model, data, trainer (but"
        " for its length), seed, reproducible and global_batch_size stay as they are in a run",
        _of_its_own(run, loaded),
    )


def kept_as_it_was(error: ConfigError, run: RunDir, loaded: LoadedConfig) -> ConfigError:
    """The error of a config that a run goes on with; its fix may not be one that is then refused.

    What no longer fits the code (a class that was renamed, an argument that is gone) cannot be
    changed in the config of a run.
    """
    found = _KEY.search(error.message)
    if found is None or found[1] in _OF_LENGTH:
        return error
    key = found[1]
    meant = _MEANT.search(error.hint)
    old = str(_value(loaded.composed.values, key)).rpartition(".")[2]
    renamed = meant is not None and key.endswith("class_path") and old.isidentifier()
    if key in loaded.origins.typed():
        return ConfigError(error.message, f"leave it out: a run keeps its {key.split('.')[0]}")
    back = f"write `{old} = {meant[2]}` in {meant[1]}" if meant and renamed else "change it back"
    own = _of_its_own(run, loaded)
    hint = f"a run keeps its {key.split('.')[0]}, so that the code has to fit: {back}; or {own}"
    return ConfigError(error.message, hint)


def refuse_length_of_an_evaluation(
    before: Plan, changes: Mapping[str, object], status: RunStatus
) -> None:
    """Refuse to make a test longer.

    Raises:
        UsageError: with what does train longer.
    """
    if before.verb in ("fit", "bench") or not changes:
        return
    raise UsageError(
        f"{', '.join(f'trainer.{key}' for key in changes)}: {what_evaluates(before, status)}",
        _train_longer(before),
    )


def what_evaluates(before: Plan, status: RunStatus) -> str:
    """That a run is no training."""
    doing = {"test": "tests", "validate": "validates", "predict": "predicts with"}[before.verb]
    return f"{status.name} ({status.run}) {doing} a model, and trains none"


def of_a_complete_evaluation(before: Plan) -> str:
    """What to type once it is complete."""
    return f"anew: hpc-train {before.verb} {_training(before)}; {_train_longer(before)}"


def _train_longer(before: Plan) -> str:
    return f"to train longer: hpc-train resume {_training(before)} trainer.max_epochs=N"


def _training(before: Plan) -> str:
    """The name of the training, which that of its evaluation begins with; RUN where it is lost."""
    import shlex

    name = before.name.removesuffix(f"-{before.verb}")
    return shlex.quote(name) if name != before.name else "RUN"


def _of_its_own(run: RunDir, loaded: LoadedConfig) -> str:
    weights = f"; with these weights: init_from={run.run_id}"
    can_begin_with_them = newest_step(run) and not loaded.config.script.path
    return f"submit the changed config as a run of its own{weights if can_begin_with_them else ''}"


def _value(values: Any, key: str) -> Any:
    for part in key.split("."):
        if isinstance(values, Mapping) and part in values:
            values = values[part]
        elif isinstance(values, list) and part.isdecimal() and int(part) < len(values):
            values = values[int(part)]
        else:
            return None
    return values
