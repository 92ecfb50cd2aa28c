"""A OneCycleLR that is over before its training: torch raises in the step behind its last one."""

from __future__ import annotations

import inspect
import json
from contextlib import suppress
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.optim.lr_scheduler import OneCycleLR

from hpc_train.errors import ConfigError
from hpc_train.runs.atomic import write_text
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.failures.users_method import own_method
from hpc_train.training.fit_notes.data_notes import users_text
from hpc_train.training.private import lightning_trainer
from hpc_train.training.resume.resume_state import ResumeState

if TYPE_CHECKING:
    from hpc_train.training.private.lightning import pl

_MAKES = "configure_optimizers"
_ENDS_EARLY = {"EarlyStopping", "Timer"}  # callbacks of Lightning's; others say should_stop
_OWN = "hpc_train.training."
_NEW_RUN = "a schedule that was saved stays as it was built: start a new run from these weights,"


def keep_schedules(trainer: pl.Trainer, run: RunDir) -> None:
    """For the one who makes the run longer: these were built for the length it has now."""
    if trainer.is_global_zero:
        text = json.dumps(lightning_trainer.schedules(trainer)) + "\n"
        with suppress(OSError):  # a full disk costs a hint, not the training
            write_text(run.schedules, text)


def check_schedules(trainer: pl.Trainer, state: ResumeState) -> None:
    """Say at a fit's begin that a schedule has too few steps, where both are known.

    It is a note where the training may well end by itself before.

    Raises:
        ConfigError: the training surely comes to the step that torch refuses.
    """
    module = trainer.lightning_module
    is_second_fit = state.start is None and trainer.global_step > 0
    if (
        is_second_fit
        or not module.automatic_optimization
        or own_method(module, "lr_scheduler_step")
    ):
        return
    for config in trainer.lr_scheduler_configs:
        takes = schedule_steps(trainer, config.interval, config.frequency)
        schedule = config.scheduler
        if type(schedule) is not OneCycleLR or takes is None or takes <= schedule.total_steps:
            continue
        has = f"OneCycleLR{_place(module)} has total_steps {schedule.total_steps}"
        per = "" if config.interval == "step" else f', stepped by "interval": "{config.interval}"'
        said, fix = f"{has}, and this training takes {takes}{per}", _fix(trainer, config, takes)
        if state.start is not None:
            fix = f"{_NEW_RUN} init_from={state.rank.run.path}"
        if state.stream is None and not _may_end_early(trainer):
            raise ConfigError(said, fix)
        _note(state, f"{said}, unless it ends by itself before; {fix}")


def schedule_steps(trainer: pl.Trainer, interval: str, frequency: int) -> int | None:
    """Steps that a schedule takes until the training's end; None where that has no known end.

    Lightning counts micro batches within the epoch against the frequency, and steps a schedule
    only where the optimizer steps (loops/training_epoch_loop.py, `_update_learning_rates`).
    """
    batches, accumulated = trainer.num_training_batches, trainer.accumulate_grad_batches
    epochs = trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else None
    if batches == float("inf") or not batches:
        is_plain = interval == "step" and frequency == accumulated == 1
        return trainer.max_steps if is_plain and trainer.max_steps > 0 and epochs is None else None
    each = -(-int(batches) // accumulated)
    whole, rest = epochs, 0
    if trainer.max_steps > 0 and (epochs is None or trainer.max_steps < each * epochs):
        whole, rest = divmod(trainer.max_steps, each)
    if whole is None:
        return None
    if interval == "epoch":
        return whole // frequency
    both = lcm(accumulated, frequency)
    at_end = batches % accumulated != 0 and batches % frequency == 0
    return whole * (int(batches) // both + at_end) + rest * accumulated // both


def _fix(trainer: pl.Trainer, config: Any, takes: int) -> str:
    if config.frequency == 1 and config.interval == "step":
        return "write total_steps=self.trainer.estimated_stepping_batches"
    return (
        f"write total_steps={'self.trainer.max_epochs' if takes == trainer.max_epochs else takes}"
    )


def _may_end_early(trainer: pl.Trainer) -> bool:
    """Whether something may end it before its last step, by a metric, the time or its own word."""
    callbacks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
    names = {kind.__name__ for it in callbacks for kind in type(it).__mro__}
    kinds = [type(it) for it in (trainer.lightning_module, *callbacks)]
    texts = [users_text(it) for it in kinds if not it.__module__.startswith(_OWN)]
    return bool(names & _ENDS_EARLY) or any(it is None or "should_stop" in it for it in texts)


def _place(module: Any) -> str:
    """` (FILE:LINE)` of where it is made, as far as the text shows it."""
    method = own_method(module, _MAKES)
    try:
        lines, first = inspect.getsourcelines(method)
    except (OSError, TypeError):  # made in a notebook or by a library: nobody can tell
        return ""
    numbers = [first + number for number, line in enumerate(lines) if "OneCycleLR(" in line]
    file = Path(method.__code__.co_filename)
    file = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f" ({file}:{numbers[0] if len(numbers) == 1 else first})"


def _note(state: ResumeState, said: str) -> None:
    rank = state.rank
    attempt = rank.run.attempt(rank.attempt)
    if rank.rank == 0 and said not in read_notes(attempt):
        leave_note(attempt, said)
