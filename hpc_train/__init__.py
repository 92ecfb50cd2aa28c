"""Gets a PyTorch Lightning training through a Slurm cluster, to the end, with the right result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hpc_train.api import Run, load, plan, render, run_here, runs, submit, test_only

__all__ = ["Run", "load", "plan", "render", "run_here", "runs", "submit", "test_only"]


def __getattr__(name: str) -> Any:
    # The ranks and the commands import this package first: the api loads when it is asked for.
    if name in __all__:
        from hpc_train import api

        return getattr(api, name)
    raise AttributeError(f"module 'hpc_train' has no attribute {name!r}")
