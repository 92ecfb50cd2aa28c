"""`Trainer.fit` that stops at step boundaries, saves, and goes on without losing a step."""

from __future__ import annotations

from typing import Any

from hpc_train.training.private.lightning import pl
from hpc_train.training.resume.lightning_adapter import LightningAdapter
from hpc_train.training.resume.resume_state import ResumeState

__all__ = ["fit_with_resume"]


def fit_with_resume(
    state: ResumeState,
    trainer: pl.Trainer,
    model: pl.LightningModule,
    datamodule: pl.LightningDataModule | None = None,
    **dataloaders: Any,
) -> None:
    """`trainer.fit` from the checkpoint that `state` has loaded (or from the start).

    Raises:
        Stopped: all ranks saved the same step and want to go on.
        ConfigError: the train loader cannot be continued exactly, and why.
        RunFailedError: the weights became NaN.
        Exception: the user's own.
    """
    adapter = LightningAdapter(state)
    adapter.attach(trainer)
    resume_from = str(state.start.model_path) if state.start is not None else None
    trainer.fit(model, datamodule=datamodule, ckpt_path=resume_from, **dataloaders)
