"""Which checkpoints a run has, by name; whether they are whole is for `training.resume` to say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.layout import CHECKPOINT_NAME, RunDir
from hpc_train.runs.script_saves import newest_own_step

MANIFEST = "manifest.json"
MODEL_FILE = "model.ckpt"  # in Lightning's own format: `load_from_checkpoint` reads it
KEEP = "keep"  # a file that keeps a checkpoint from being deleted


def checkpoint_folders(folder: Path) -> list[tuple[int, Path]]:
    """Committed checkpoints by step, newest first; nothing of them is read."""
    if not folder.is_dir():
        return []
    matches = [(CHECKPOINT_NAME.match(path.name), path) for path in folder.iterdir()]
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def fit_checkpoints(run: RunDir, fit: int) -> Path:
    """Where a run's fit number `fit` saves; a script may have several, one after another."""
    return run.checkpoints / f"fit-{fit}" if fit else run.checkpoints


def fits_with_checkpoints(run: RunDir) -> list[Path]:
    """These folders, as far as they are there."""
    later = run.checkpoints.glob("fit-[0-9]*")
    return [run.checkpoints, *sorted(later, key=lambda path: int(path.name.partition("-")[2]))]


def checkpoint_steps(run: RunDir) -> dict[int, Path]:
    """Folders of the checkpoints that have a manifest, by step, oldest first."""
    found = [item for fit in fits_with_checkpoints(run) for item in checkpoint_folders(fit)[::-1]]
    return {step: path for step, path in found if (path / MANIFEST).is_file()}


def newest_step(run: RunDir, *, damaged: Collection[int] = ()) -> int:
    """Optimizer steps that survive a restart; 0 where nothing was saved yet.

    Args:
        damaged: Steps whose checkpoints were found damaged, and may not have been moved aside.
    """
    return max(checkpoint_steps(run).keys() - damaged, default=newest_own_step(run))


def removed_step(run: RunDir, attempts: Sequence[AttemptRecord]) -> int:
    """The newest step that is known to have been saved, where nothing so new is left; else 0.

    Somebody has removed it then, as for a quota; what was found damaged has a word of its own.
    """
    damaged = {item.step for attempt in attempts for item in attempt.damaged}
    # While any is left the newest attempt counts alone: it may have had to begin before another.
    newest = newest_step(run)
    told = attempts[-1:] if newest else attempts
    return max(
        (it.saved_step for it in told if it.saved_step > newest and it.saved_step not in damaged),
        default=0,
    )


def tell_removed(step: int) -> str:
    """What is said of such a step."""
    return f"step {step} was saved, and is no longer there"
