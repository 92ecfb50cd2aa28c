"""Which folders hold runs, as plain paths.

For `hpc-train list`, which is to take no longer than Slurm: neither pathlib nor re is imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["RUNS_DIR_VARIABLE", "known_folders", "run_folders", "state_folder"]

RUNS_DIR_VARIABLE = "HPC_TRAIN_RUNS_DIR"


def state_folder(environ: Mapping[str, str]) -> str:
    """`$XDG_STATE_HOME/hpc-train`, by default `~/.local/state/hpc-train`; it need not exist."""
    state = environ.get("XDG_STATE_HOME") or environ.get("HOME", "/") + "/.local/state"
    return f"{state}/hpc-train"


def known_folders(environ: Mapping[str, str]) -> list[str]:
    """Every folder in which a run was ever made by this user."""
    try:
        with open(f"{state_folder(environ)}/runs-dirs", encoding="utf-8") as stream:  # noqa: PTH123
            return [line for line in stream.read().splitlines() if line]
    except OSError:
        return []


def run_folders(environ: Mapping[str, str], cwd: str) -> list[str]:
    """Folders that hold runs: the variable, ./runs, and every one a run was ever made in."""
    named = environ.get(RUNS_DIR_VARIABLE)
    candidates = [named] if named else [f"{cwd}/runs", *known_folders(environ)]
    unique = dict.fromkeys(os.path.abspath(path) for path in candidates)  # noqa: PTH100
    return [path for path in unique if os.path.isdir(path)]  # noqa: PTH112
