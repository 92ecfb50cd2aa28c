"""`Trainer.fit` that stops at step boundaries, saves, and goes on without losing a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpc_train.training.private.lightning import pl
from hpc_train.training.resume.lightning_adapter import LightningAdapter
from hpc_train.training.resume.resume_state import ResumeState


def fit_with_resume(
    state: ResumeState,
    trainer: pl.Trainer,
    *,
    fit: Callable[..., None] | None = None,
    **arguments: Any,
) -> None:
    """`trainer.fit` from the checkpoint that `state` has loaded (or as the arguments say).

    A fit that had ended already takes no step, and leaves everything as its end had left it.

    Args:
        fit: In place of `trainer.fit`.
        arguments: Of `Trainer.fit`, by name.

    Raises:
        Stopped: all ranks saved the same step and want to go on.
        ConfigError: the train loader cannot be continued exactly, and why.
        RunFailedError: the weights became NaN.
        Exception: the user's own.
    """
    adapter = LightningAdapter(state)
    adapter.attach(trainer)
    if state.start is not None:
        arguments["ckpt_path"] = str(state.start.model_path)
    (fit or trainer.fit)(**arguments)
    adapter.restore_ended()
