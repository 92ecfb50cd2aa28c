"""Which checkpoints a run has, by name; whether they are whole is for their readers to say."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from hpc_train.runs.layout import CHECKPOINT_NAME, RunDir

__all__ = ["MANIFEST", "checkpoint_steps", "newest_step"]

MANIFEST = "manifest.json"


def checkpoint_steps(run: RunDir) -> dict[int, Path]:
    """Folders of the committed checkpoints by step, oldest first."""
    if not run.checkpoints.is_dir():
        return {}
    found = {}
    for path in run.checkpoints.iterdir():
        match = CHECKPOINT_NAME.match(path.name)
        if match and (path / MANIFEST).is_file():
            found[int(match.group(1))] = path
    return dict(sorted(found.items()))


def newest_step(run: RunDir, *, damaged: Collection[int] = ()) -> int:
    """Optimizer steps that survive a restart; 0 where nothing was saved yet.

    Args:
        damaged: Steps whose checkpoints were found damaged, and may not have been moved aside.
    """
    return max(checkpoint_steps(run).keys() - damaged, default=0)
