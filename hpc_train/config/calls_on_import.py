"""Calls of the Python interface that a module makes while a rank imports it: each rank would.

A training whose model stands in a file that starts a training, without a guard, would start
another one in each of its ranks, and that one again.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path

from hpc_train.errors import ConfigError

FUNCTIONS = ("submit", "submit_sweep", "run_here")
OF_RUNS = ("wait", "follow", "resume", "start", "go_on", "evaluate")
_CALLS = {*FUNCTIONS, *(f"Run.{it}" for it in OF_RUNS)}
_IN_A_RANK = "HPC_TRAIN_RUN_DIR"  # plan.env_names.RUN_DIR, which layers keep from here
_IMPORTS = "<frozen importlib"  # Python's own, which runs a module
_PACKAGE = Path(__file__).parents[1]
_GUARD = 'put it below `if __name__ == "__main__":`'


def refuse_on_import(function: Callable[..., object]) -> None:
    """Refuse a call that a module makes while it is imported in a rank.

    What a script itself does is its own business, as is what runs later: a callback that submits
    the next training.

    Raises:
        ConfigError: with `FILE:LINE`.
    """
    if _IN_A_RANK not in os.environ or function.__qualname__ not in _CALLS:
        return
    frame = inspect.currentframe()
    while frame is not None:
        file, caller = Path(frame.f_code.co_filename), frame.f_back
        is_import = caller is not None and caller.f_code.co_filename.startswith(_IMPORTS)
        if is_import and file.is_file() and not file.is_relative_to(_PACKAGE):
            raise refused_on_import(f"{file}:{frame.f_lineno}", f"{function.__qualname__}(...)")
        frame = caller


def refused_on_import(place: str, shown: str) -> ConfigError:
    """The refusal of a call at `FILE:LINE`."""
    said = f"{place}: {shown} runs as the file is imported, in each rank, of that training as well"
    return ConfigError(said, _GUARD)
