"""Checkpoints on disk: a folder is complete or absent, the newest whole one is taken.

Everything is written into `.step-S.partial-A` beside the target (A is the attempt, so that a rank
left over from a lost node cannot write into a later attempt's folder), and committed by a rename.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hpc_train.runs.atomic import fsync_path, write_text
from hpc_train.runs.checkpoints import KEEP, MANIFEST, checkpoint_folders
from hpc_train.runs.layout import checkpoint_name
from hpc_train.training.resume.manifest import DamagedCheckpointError, Manifest, find_problem


@dataclass(frozen=True)
class CheckedCheckpoint:
    """One checkpoint of a run; `reason` says why it is not valid."""

    step: int
    path: Path
    reason: str | None

    @property
    def valid(self) -> bool:
        """Whether a run can go on from it."""
        return self.reason is None


def list_checkpoints(folder: Path, *, verify: bool) -> list[CheckedCheckpoint]:
    """All checkpoints, newest first; `verify` reads every file, else only sizes are compared."""
    found = [
        (step, path, find_problem(path, hashes=verify)) for step, path in checkpoint_folders(folder)
    ]
    return [CheckedCheckpoint(step, path, bad.reason if bad else None) for step, path, bad in found]


def find_newest_valid(
    folder: Path, *, verify: bool = True
) -> tuple[Path | None, list[CheckedCheckpoint]]:
    """The newest checkpoint that verifies; each file is read at most once.

    Damaged ones that are newer are renamed to `step-S.broken`, where the file system lets us, so
    that nobody counts them, and a new checkpoint of the same step finds its name free. One that
    may be whole is left alone and not passed over either: going on from an earlier one would take
    its steps again, and saves of these are the first that `prune` deletes.

    Returns:
        The folder (None if there is none), and the broken ones, newest first, where they are now.

    Raises:
        CheckpointError: the newest one cannot be read here, or is of a later hpc-train.
    """
    broken: list[CheckedCheckpoint] = []
    for step, path in checkpoint_folders(folder):
        problem = find_problem(path, hashes=verify)
        if problem is None:
            return path, broken
        if not isinstance(problem, DamagedCheckpointError):
            raise problem
        broken.append(CheckedCheckpoint(step, _set_aside(path), problem.reason))
    return None, broken


def _set_aside(path: Path) -> Path:
    for number in range(100):
        aside = path.with_name(f"{path.name}.broken{number or ''}")
        if not aside.exists():
            break
    try:
        return path.rename(aside)
    except OSError:  # a read-only folder: it is passed over by each start anew
        return path


def open_partial(folder: Path, step: int, attempt: int) -> Path:
    """The folder to write a checkpoint into; every rank calls this, any may be first.

    Raises:
        OSError: as the file system says.
    """
    partial = folder / f".{checkpoint_name(step)}.partial-{attempt}"
    try:
        partial.mkdir(exist_ok=True)
    except FileNotFoundError:
        folder.mkdir(exist_ok=True)  # and no parents: of a run that was moved nothing is made anew
        partial.mkdir(exist_ok=True)
    return partial


def commit(partial: Path, manifest: Manifest) -> Path:
    """Make `partial` the checkpoint of its step, once all its files are written and on the disk.

    Raises:
        OSError: as the file system says; the partial folder stays as it is.
    """
    target = partial.with_name(checkpoint_name(manifest.step))
    listed = {record.path for record in manifest.files}
    for path in [path for path in partial.rglob("*") if path.is_file()]:
        if path.relative_to(partial).as_posix() not in listed:
            path.unlink()  # of a save of the same step that failed before
    write_text(partial / MANIFEST, manifest.to_json())
    for path in partial.rglob("*"):
        if path.is_dir():
            fsync_path(path)
    if target.exists():
        problem = find_problem(target, hashes=False)
        if problem is None:
            shutil.rmtree(partial)
            return target
        if not isinstance(problem, DamagedCheckpointError):
            raise OSError(f"{target} is in the way, and may be whole: {problem.reason}")
        _set_aside(target)
    partial.rename(target)
    fsync_path(target.parent)
    return target


def discard_partials(folder: Path) -> None:
    """Remove what an interrupted save left; only when no save is under way."""
    for pattern in (".step-*.partial-*", ".deleted-*"):
        for path in folder.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


def surplus_steps(
    steps: Iterable[int], *, keep_last: int, keep_every_n_steps: int | None
) -> list[int]:
    """Steps whose checkpoints need not be kept. Pure.

    The last `keep_last` (at least one) are kept, and for good the first at or after each
    multiple of `keep_every_n_steps`.
    """
    ordered = sorted(steps)
    kept = set(ordered[-max(1, keep_last) :])
    if keep_every_n_steps:
        first_of: dict[int, int] = {}
        for step in ordered:
            first_of.setdefault(step // keep_every_n_steps, step)
        kept |= {step for multiple, step in first_of.items() if multiple > 0}
    return [step for step in ordered if step not in kept]


def prune(folder: Path, *, keep_last: int, keep_every_n_steps: int | None) -> list[int]:
    """Delete surplus checkpoints; returns their steps.

    Only folders with a manifest and files of the right sizes count as kept, so a broken one
    never takes a whole one's place. One with a file `keep` is neither counted nor
    deleted. A folder is renamed before it is emptied: never half there.

    Raises:
        OSError: as the file system says.
    """
    whole = {
        found.step: found.path
        for found in list_checkpoints(folder, verify=False)
        if found.valid and not (found.path / KEEP).exists()
    }
    surplus = surplus_steps(whole, keep_last=keep_last, keep_every_n_steps=keep_every_n_steps)
    for step in surplus:
        doomed = whole[step].rename(folder / f".deleted-{whole[step].name}")
        shutil.rmtree(doomed)
    return surplus
