"""Functions of Lightning's as a traceback names them. Imports nothing of it."""

from __future__ import annotations

from pathlib import Path

# What `pytorch_lightning.trainer.call` does once a fit has raised: callbacks hear of it, and the
# loops, the loaders and the strategy are closed.
IN_TEARDOWN = ("_interrupt", "_teardown", "_call_teardown_hook")


def in_teardown(file: str, function: str) -> bool:
    """Whether a frame of a traceback is Lightning's closing of a fit."""
    return function in IN_TEARDOWN and Path(file).parent.name == "trainer" and "lightning" in file


def in_restore(file: str, function: str) -> bool:
    """Whether a frame is Lightning's loading of the checkpoint from which a fit goes on."""
    return function == "restore_model" and Path(file).name == "checkpoint_connector.py"


def in_load(file: str, function: str) -> bool:
    """Whether a frame is `load_from_checkpoint`'s making of the object."""
    return function == "_load_state" and Path(file).name == "saving.py" and "lightning" in file


def in_optimizer_setup(function: str) -> bool:
    """Whether a frame is Lightning's reading of what configure_optimizers returned."""
    return function == "_init_optimizers_and_lr_schedulers"


def in_sanity_check(function: str) -> bool:
    """Whether a frame is of the validation that comes before the first step of a fit."""
    return function == "_run_sanity_check"
