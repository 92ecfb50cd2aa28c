"""`Trainer.fit` that stops at step boundaries, saves, and goes on without losing a step."""

from __future__ import annotations

from typing import Any

from pytorch_lightning import LightningDataModule, LightningModule, Trainer
from pytorch_lightning.callbacks import Checkpoint

from hpc_train.training.resume.lightning_adapter import HpcTrainCallback, LightningAdapter
from hpc_train.training.resume.resume_state import ResumeState

__all__ = ["fit_with_resume", "resumable_arguments"]


def resumable_arguments(arguments: dict[str, Any], *, accumulate: int) -> dict[str, Any]:
    """The Trainer's arguments with what exact resuming needs (a new dict).

    Lightning's own checkpointing is off where the user has no ModelCheckpoint and says nothing.

    Args:
        accumulate: Micro batches that make one optimizer step.
    """
    callbacks = arguments.get("callbacks") or []
    return {
        "enable_checkpointing": any(isinstance(item, Checkpoint) for item in callbacks),
        **arguments,
        "accumulate_grad_batches": accumulate,
        "use_distributed_sampler": False,
    }


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
