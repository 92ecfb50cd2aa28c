"""`Trainer.fit` that stops at step boundaries, saves, and goes on without losing a step."""

from __future__ import annotations

from typing import Any

from pytorch_lightning import LightningDataModule, LightningModule, Trainer

from hpc_train.training.resume.lightning_adapter import HpcTrainCallback, LightningAdapter
from hpc_train.training.resume.resume_state import ResumeState

__all__ = ["fit_with_resume"]


def fit_with_resume(
    state: ResumeState,
    trainer: Trainer,
    model: LightningModule,
    datamodule: LightningDataModule | None = None,
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
    # Last: what other callbacks do at a step's end belongs to the step.
    callbacks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
    callbacks.append(HpcTrainCallback(adapter))
    resume_from = str(state.start.model_path) if state.start is not None else None
    trainer.fit(model, datamodule=datamodule, ckpt_path=resume_from, **dataloaders)
