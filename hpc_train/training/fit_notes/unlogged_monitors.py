"""Metrics that a callback or a schedule waits for, or a file's name has, and nothing has logged.

Looked for when the first whole epoch is over, and at a fit's end. Lightning raises where it looks
for one after a validation. Otherwise it warns in a line of the log (ModelCheckpoint,
`strict=False`), or never looks, and saves, stops or lowers nothing. Into a file's name it writes 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from hpc_train.config.fit.near_metrics import metrics_in, near_metrics, of_stage
from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.config.words import did_you_mean
from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.private.logged_names import logged_names

if TYPE_CHECKING:
    from hpc_train.training.private.lightning import pl

_WAITING = {"ModelCheckpoint", "EarlyStopping"}
_MOST_OTHERS = 2


NEVER = "never logged"


def note_unlogged(attempt: AttemptDir, trainer: pl.Trainer, said: str = NEVER) -> None:
    """Leave a note for each metric that has not come, unless this attempt has one of it."""
    there = read_notes(attempt)
    for what, rest in unlogged_monitors(trainer).items():
        if not any(note.startswith(f"{what}, ") for note in there):
            leave_note(attempt, f"{what}, {said}; {rest}")


def unlogged_monitors(trainer: pl.Trainer) -> dict[str, str]:
    """Who waits for which metric that has not come -> what has been logged, and what to write."""
    logged = logged_names(trainer)
    known = {*logged, "step", "epoch"}
    missing: dict[str, list[str]] = {}
    for who, monitor in _monitors(trainer):
        if monitor not in known:
            missing.setdefault(monitor, []).append(who)
    names = sorted(logged - {"step", "epoch"})
    why = _no_validation(trainer)
    told = dict(_told(monitor, who, names, why) for monitor, who in missing.items())
    of_names = {it for it in _in_names(trainer) if it not in known}
    told |= dict(_told_of_name(metric, names, why) for metric in sorted(of_names))
    return told


def _no_validation(trainer: pl.Trainer) -> str:
    """Why a model that has a validation_step is not validated in this fit; empty where it is."""
    owners = [it for it in type(trainer.lightning_module).__mro__ if "validation_step" in vars(it)]
    if not owners or is_lightnings(owners[0].__module__):
        return ""
    if trainer.limit_val_batches == 0:
        return "no validation runs, as trainer.limit_val_batches is 0"
    if not trainer.enable_validation:
        return "no validation runs, as the data have no val_dataloader"
    every, epochs = trainer.check_val_every_n_epoch, trainer.max_epochs
    if every and epochs and 0 < epochs < every:
        return f"no validation runs, as check_val_every_n_epoch {every} is above max_epochs"
    return ""


def _monitors(trainer: pl.Trainer) -> Iterator[tuple[str, str]]:
    for callback in cast("Any", trainer).callbacks:
        kinds = {base.__name__ for base in type(callback).__mro__}  # of either package
        if not kinds & _WAITING or getattr(callback, "save_top_k", None) == 0:
            continue
        if monitor := callback.monitor:
            yield type(callback).__name__, monitor
    for schedule in trainer.lr_scheduler_configs:
        if schedule.reduce_on_plateau and schedule.monitor:
            yield type(schedule.scheduler).__name__, schedule.monitor


def _in_names(trainer: pl.Trainer) -> Iterator[str]:
    """The metrics that the names of files have which a ModelCheckpoint saves."""
    for callback in cast("Any", trainer).callbacks:
        kinds = {base.__name__ for base in type(callback).__mro__}
        if "ModelCheckpoint" in kinds and getattr(callback, "save_top_k", None) != 0:
            yield from metrics_in(str(callback.filename or ""))


def _told_of_name(metric: str, names: list[str], why: str) -> tuple[str, str]:
    there = of_stage(metric, names) or names
    write = f"write {' or '.join(f'{{{it}}}' for it in there[:_MOST_OTHERS])} in filename"
    fix = near_metrics(metric, names) or why or (write if there else "leave it out of filename")
    said = f"logged: {', '.join(names) or 'nothing'}; each file's name has 0 there; {fix}"
    return f"the filename of ModelCheckpoint has {metric}", said


def _told(monitor: str, who: list[str], names: list[str], why: str) -> tuple[str, str]:
    verb = "monitors" if len(who) == 1 else "monitor"
    near = did_you_mean(monitor, names, cutoff=0.85)
    fix = (
        near
        or why
        or did_you_mean(monitor, names)
        or f'write self.log("{monitor}", ...) in the model'
    )
    return f"{', '.join(who)} {verb} {monitor}", f"logged: {', '.join(names) or 'nothing'}; {fix}"
