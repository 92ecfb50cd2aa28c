"""Lays a factor over the learning rates of a fit, whatever makes them."""

from __future__ import annotations

from typing import Any

from hpc_train.errors import ConfigError
from hpc_train.plan.lr_scale import LrScale
from hpc_train.training.private.lightning import pl


def scale_rates(trainer: pl.Trainer, scale: LrScale) -> None:
    """Multiply within each step alone: schedulers, checkpoints and monitors see the script's own.

    Raises:
        ConfigError: the script steps its optimizers by itself, or one of them has no hooks.
    """
    automatic = trainer.lightning_module.automatic_optimization
    for optimizer in trainer.optimizers:
        if not automatic or not hasattr(optimizer, "register_step_pre_hook"):
            kind = type(optimizer).__name__
            what = f"its {kind} has no hooks" if automatic else "it optimizes manually"
            raise ConfigError(
                f"script.scale_lr cannot scale the script's learning rates: {what}",
                "scale them in the script, and leave script.scale_lr out",
            )
        _scale(trainer, optimizer, scale)


def _scale(trainer: pl.Trainer, optimizer: Any, scale: LrScale) -> None:
    kept: list[Any] = []

    def before(*_: Any) -> None:
        share = scale.at(trainer.global_step)
        kept[:] = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * share

    def after(*_: Any) -> None:
        for group, rate in zip(optimizer.param_groups, kept, strict=True):
            group["lr"] = rate

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)
