"""Gets a PyTorch Lightning training through a Slurm cluster, to the end, with the right result."""

from __future__ import annotations

__version__ = "0.1.0"

# `typing` is half of what `hpc-train list` would import; type checkers take the name at its word.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from hpc_train.api import Run, load, render, run_here, runs, submit, test_only
    from hpc_train.training.session import Session

# `plan` is the name of a package here; the function is `hpc_train.api.plan`.
__all__ = ["Run", "Session", "load", "render", "run_here", "runs", "submit", "test_only"]


def __getattr__(name: str) -> object:
    # The ranks and the commands import this package first: the rest loads when it is asked for.
    if name == "Session":
        from hpc_train.training.session import Session

        return Session
    if name in __all__:
        from hpc_train import api

        return getattr(api, name)
    raise AttributeError(f"module 'hpc_train' has no attribute {name!r}")
