"""Which checkpoints a run has, by name; whether they are whole is for `training.resume` to say."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from hpc_train.runs.layout import CHECKPOINT_NAME, RunDir

__all__ = ["MANIFEST", "checkpoint_folders", "checkpoint_steps", "newest_step"]

MANIFEST = "manifest.json"


def checkpoint_folders(folder: Path) -> list[tuple[int, Path]]:
    """Committed checkpoints by step, newest first; nothing of them is read."""
    if not folder.is_dir():
        return []
    matches = [(CHECKPOINT_NAME.match(path.name), path) for path in folder.iterdir()]
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def checkpoint_steps(run: RunDir) -> dict[int, Path]:
    """Folders of the checkpoints that have a manifest, by step, oldest first."""
    found = reversed(checkpoint_folders(run.checkpoints))
    return {step: path for step, path in found if (path / MANIFEST).is_file()}


def newest_step(run: RunDir, *, damaged: Collection[int] = ()) -> int:
    """Optimizer steps that survive a restart; 0 where nothing was saved yet.

    Args:
        damaged: Steps whose checkpoints were found damaged, and may not have been moved aside.
    """
    return max(checkpoint_steps(run).keys() - damaged, default=0)
