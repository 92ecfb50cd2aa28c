"""Lightning's fit loops with one addition: a place behind everything that belongs to a step.

Callback hooks come too early (before the batch is counted, before validation and its schedulers)
or too late (the next batch is drawn). So the step boundary is the end of the epoch loop's
`on_advance_end`, and a checkpoint taken there needs none of Lightning's repairs at restart, which
take steps twice and leave out validations and plateau schedulers (pytorch_lightning 2.6
training_epoch_loop.py, `reset`, `advance`).
"""

from __future__ import annotations

import time
import warnings
from typing import Any, Protocol

from hpc_train.training.private.lightning import _FitLoop, _TrainingEpochLoop, pl
from hpc_train.training.private.lightning_trainer import current_epoch

# Of a Trainer since Lightning 2.6: a val_check_interval that is a time, in seconds, and when the
# last validation ended, on the monotonic clock.
_INTERVAL, _LAST_VALIDATION = "_val_check_time_interval", "_last_val_time"
_SINCE_VALIDATION = "since_validation_s"


class StepHooks(Protocol):
    """What is called from inside the loops, on all ranks alike."""

    def was_over(self) -> bool | None:
        """Whether the checkpoint that waits is of a finished training; None if none waits."""

    def begins(self) -> bool:
        """The data loader has been started, the first step comes; True: after a validation."""

    def reads_again(self) -> bool:
        """Whether the data have to be started once more before the first step."""

    def epoch_begins(self, epoch: int) -> None:
        """The next iteration of the train data is `epoch`."""

    def validation_begins(self) -> None:
        """The last step is done, and a validation comes before the next."""

    def boundary(self) -> None:
        """The optimizer stepped, and everything that belongs to that step is done."""

    def ends(self) -> None:
        """The last step is done; no hook of the training's end has run yet."""

    def ends_again(self) -> bool:
        """Whether a fit without a step has the hooks of its end to run, which were broken off."""


class _EpochLoop(_TrainingEpochLoop):
    """One epoch, entered at its beginning or behind any of its steps."""

    def __init__(self, trainer: pl.Trainer, hooks: StepHooks, inner: _TrainingEpochLoop) -> None:
        super().__init__(trainer, min_steps=inner.min_steps, max_steps=inner.max_steps)
        self._hooks = hooks
        self._begun = False
        self._validates: bool | None = None

    def _broadcast_sigterm_tensor(self) -> None:
        """Lightning's own broadcast before each step; ours is rarer, and hears every rank."""

    def reset(self) -> None:
        """Without Lightning's warning that our loaders cannot go on in an epoch: they can."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*your dataloader is not resumable.*")
            super().reset()

    def on_run_start(self, data_fetcher: Any) -> None:
        """Start the data, then put the state back: starting draws on the RNGs."""
        super().on_run_start(data_fetcher)
        if self._begun:
            return
        self._begun = True
        # What was saved needs no repair: every counter is that of a whole step.
        self.restarting = self.trainer.fit_loop._restarting = False
        self.trainer.fit_loop._count_on()
        if self._hooks.reads_again():
            iter(data_fetcher)
        if self._hooks.begins():
            self._validates = True
            self.on_advance_end(data_fetcher)

    def on_advance_end(self, data_fetcher: Any) -> None:
        """Validation, schedulers, counters; then the step is over."""
        if self._validates is None:
            self._validates = self._should_check_val_fx(data_fetcher)
        if self._validates:
            self._hooks.validation_begins()
        super().on_advance_end(data_fetcher)
        self._validates = None
        if not self._should_accumulate():
            self._hooks.boundary()

    def _should_check_val_fx(self, data_fetcher: Any) -> bool:
        """Asked once per step: by the clock, the answer could change in between.

        Lightning 2.6 lets each rank ask its own clock where `val_check_interval` is a time: one
        rank validates, another takes the next step, and both wait in collectives that do not
        match (training_epoch_loop.py, `_should_check_val_fx`). Here all validate, or none.
        """
        if self._validates is not None:
            return self._validates
        validates = bool(super()._should_check_val_fx(data_fetcher))
        if getattr(self.trainer, _INTERVAL, None) is None:
            return validates
        return bool(self.trainer.strategy.reduce_boolean_decision(validates, all=False))


class _EpochsLoop(_FitLoop):
    """All epochs; the data loader's own state is not kept by Lightning but by us, per rank."""

    def __init__(self, trainer: pl.Trainer, hooks: StepHooks, inner: _FitLoop) -> None:
        super().__init__(trainer, min_epochs=inner.min_epochs, max_epochs=inner.max_epochs)
        self._hooks = hooks

        self._since_validation_s = 0.0

    def hooked(self, hooks: StepHooks) -> None:
        """Begin another fit, in which `hooks` are called."""
        steps: Any = self.epoch_loop
        self._hooks = steps._hooks = hooks
        steps._begun, steps._validates = False, None

    @property
    def done(self) -> bool:
        """Not before what was restored is at its end: an epoch's end may be all that is left."""
        over = self._hooks.was_over()
        return super().done if over is None else over

    def on_advance_start(self) -> None:
        """The data hear of the epoch before they are asked for its first batch."""
        self.setup_data()
        self._hooks.epoch_begins(current_epoch(self.trainer))
        super().on_advance_start()

    def run(self) -> None:
        """A fit that had ended takes no step; its callbacks may not have come to their end."""
        super().run()
        if self._hooks.ends_again():
            super().on_run_start()
            super().on_run_end()

    def on_run_end(self) -> None:
        """What callbacks do at the end is not part of the state: averages become the weights."""
        self._hooks.ends()
        super().on_run_end()

    def on_save_checkpoint(self) -> dict[str, Any]:
        """Without the loader's state, which is rank 0's alone and a batch ahead.

        Where `val_check_interval` is a time, with what of it has gone by: jobs that are shorter
        would never validate.
        """
        last_s = getattr(self.trainer, _LAST_VALIDATION, None)
        if getattr(self.trainer, _INTERVAL, None) is None or last_s is None:
            return {}
        return {_SINCE_VALIDATION: time.monotonic() - last_s}

    def on_load_checkpoint(self, state_dict: dict[str, Any]) -> None:
        """Nothing of a loader's state is in it."""
        self._since_validation_s = state_dict.get(_SINCE_VALIDATION, 0.0)

    def _count_on(self) -> None:
        """Let the time since the last validation begin with that of the attempts before."""
        if getattr(self.trainer, _INTERVAL, None) is not None:
            last_s = getattr(self.trainer, _LAST_VALIDATION) - self._since_validation_s
            setattr(self.trainer, _LAST_VALIDATION, last_s)
        self._since_validation_s = 0.0


def replace_loops(trainer: pl.Trainer, hooks: StepHooks) -> None:
    """Give a Trainer that has not run yet our loops, as its own __init__ gives it Lightning's."""
    inner = trainer.fit_loop
    if isinstance(inner, _EpochsLoop):  # a second fit of a script's Trainer goes on with its loops
        inner.hooked(hooks)
        return
    trainer.fit_loop = _EpochsLoop(trainer, hooks, inner)
    trainer.fit_loop.epoch_loop = _EpochLoop(trainer, hooks, inner.epoch_loop)
