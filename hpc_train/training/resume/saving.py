"""Saving: every rank writes its own files, rank 0 commits once all are done.

Asynchronous, the training stalls for the copy to host memory alone; a thread writes, flushes and
hashes (torch.save, fsync and hashlib free the GIL). Whether all ranks are done, the ranks learn
from the agreement they make anyway, so nothing depends on what one node sees of another's files.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

from hpc_train.runs.atomic import fsync_path
from hpc_train.runs.checkpoints import MODEL_FILE
from hpc_train.runs.ranks import FailedSaves, leave_note
from hpc_train.training.faults import RehearsedFaults
from hpc_train.training.rank_config import RankConfig, installed_versions
from hpc_train.training.rank_failure import is_of_node, user_frame
from hpc_train.training.resume.checkpoint import commit, discard_partials, open_partial, prune
from hpc_train.training.resume.diverged import DivergedError
from hpc_train.training.resume.manifest import FileRecord, Manifest, record_file
from hpc_train.training.resume.saving_thread import SavingThread
from hpc_train.training.resume.staging import NotCopiedError, StagingBuffers
from hpc_train.training.resume.unsavable import (
    Authors,
    Unsavable,
    UnsavableError,
    explain,
    first_of,
    is_full,
    is_of_storage,
    unknown_author,
    words_of,
)

SHARDS = "model"  # a folder in its place, for strategies that save in shards


def rank_file(rank: int) -> str:
    """Name of what one rank alone knows: RNGs, stream position, buffers."""
    return f"rank-{rank}.pt"


def say_loudly(text: str) -> None:
    """One line in the rank's log that cannot be missed."""
    print(f"WARNING: {text}", file=sys.stderr, flush=True)  # noqa: T201 - a rank's log


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The state at one step boundary, as it lies in memory.

    Attributes:
        samples: Consumed by all ranks together in `epoch`.
        model: Written by rank 0 alone; None on the others, or where `shards` writes it.
        own: What every rank writes of itself.
        shards: Writes the rank's part of a sharded state into a folder; collective.
        parameters: Keys of `model["state_dict"]` that are trained; none of them may be NaN.
        beside_shards: What `shards` writes of whole objects, as `model` would hold them.
        authors: Who made what stands under some keys of {"model": ..., "own": ...}.
    """

    step: int
    epoch: int
    samples: int | None
    model: Any
    own: Any
    shards: Callable[[Path], None] | None = None
    parameters: frozenset[str] = frozenset()
    beside_shards: Any = None
    authors: Authors = unknown_author


@dataclass(frozen=True, kw_only=True)
class _Written:
    """How one rank's part of a save went; sent to the others.

    Attributes:
        error: What the storage said; `is_told` where this rank's log has it already.
        unsavable: What the program put into it and cannot be written.
    """

    files: tuple[FileRecord, ...] = ()
    error: str = ""
    full: bool = False
    is_told: bool = False
    nan: str = ""
    unsavable: Unsavable | None = None


class Saver:
    """Saves of one rank. All ranks call the same methods in the same order.

    What the storage refuses costs that save alone; what the program put into the state and nothing
    can write ends the training.

    Attributes:
        failed: Saves since the newest one that came about, as rank 0 knows; None where none did.

    Args:
        group: A CPU group; None for a world of one.
    """

    def __init__(
        self, rank: RankConfig, *, group: dist.ProcessGroup | None, faults: RehearsedFaults
    ) -> None:
        self.rank = rank
        self._folder = rank.checkpoints
        self._group = group
        self._faults = faults
        self._host = StagingBuffers()
        self._thread = SavingThread()
        self._started = 0
        self._settled = 0
        self._result = _Written()
        self._under_way: Snapshot | None = None
        self._commit_ok = True
        self.failed: FailedSaves | None = None
        self._is_noted = False
        self.written = 0  # saves whose part this rank has written (or failed to)
        self.last_step: int | None = None  # of the newest save that was committed or is being
        self.is_last = False  # the training is over, and what is saved now is its last state

    @property
    def busy(self) -> bool:
        """Whether a save is under way on this rank."""
        return self._settled < self._started or self._thread.busy

    def prepare(self, snapshot: Snapshot) -> None:
        """Make the host buffers ahead of the first asynchronous save, in the background.

        Raises:
            UnsavableError: the state can never be saved.
        """
        shapes = self._of_state(snapshot, StagingBuffers.layout)
        self._thread.run(lambda: self._host.prepare(shapes))

    def start(self, snapshot: Snapshot) -> None:
        """Save while the training goes on (or at once, where that cannot be). Collective."""
        if snapshot.step == self.last_step:
            return
        if not self.rank.checkpoint.asynchronous or snapshot.shards is not None:
            self.save(snapshot)
            return
        self.finish()
        job = self._under_way = self.copy(snapshot)
        self._started += 1
        self.last_step = snapshot.step
        self._thread.run(lambda: self._write_in_background(job))

    def copy(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot that the training cannot change any more; valid until the next copy.

        Raises:
            RuntimeError: a save still needs the buffers.
            UnsavableError: the state can never be saved.
        """
        if self.busy:
            raise RuntimeError("the host buffers are in use")
        copied = self._of_state(snapshot, self._host.copy)
        return replace(snapshot, model=copied["model"], own=copied["own"])

    def _of_state(self, snapshot: Snapshot, use: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        try:
            return use({"model": snapshot.model, "own": snapshot.own})
        except NotCopiedError as error:
            raise UnsavableError(_unsavable(snapshot, error.refused)) from error

    def wait_idle(self) -> None:
        """Wait until the background thread has nothing to do."""
        self._thread.wait()

    def settle(self, written_by_all: int) -> None:
        """Commit the save under way if every rank has written its part. Collective.

        Raises:
            RunFailedError: the weights are not numbers any more, or the state cannot be written.
        """
        if self._settled == self._started or written_by_all < self._started:
            return
        self._settled = self._started
        snapshot, self._under_way = self._under_way, None
        assert snapshot is not None
        parts = self._exchange(self._result)
        if not self._acceptable(parts, snapshot.step):
            self._complain(snapshot.step, parts)
            self.last_step = None
        elif self.rank.rank == 0:
            self._thread.run(lambda: self._commit(snapshot, parts))

    def save(self, snapshot: Snapshot) -> bool:
        """Save now; returns on all ranks whether the checkpoint is there. Collective.

        A full disk is tried once more after the oldest checkpoints have been deleted. Raises what
        `settle` does.
        """
        self.finish()
        if snapshot.step == self.last_step and self._commit_ok:
            return True
        for _ in range(2):
            parts = self._exchange(self._write(snapshot))
            acceptable = self._acceptable(parts, snapshot.step)
            if acceptable and self.rank.rank == 0:
                self._commit(snapshot, parts)
            if self._agree_on_commit(acceptable):
                self.last_step = snapshot.step
                return True
            if not any(part.full for part in parts):
                break
        self._complain(snapshot.step, parts)
        return False

    def finish(self) -> None:
        """Wait for the save under way and commit it. Collective."""
        self.wait_idle()
        self.settle(self._started)  # its exchange waits for the parts of all ranks
        self.wait_idle()
        if not self._agree_on_commit(True):
            self.last_step = None

    def _write_in_background(self, snapshot: Snapshot) -> None:
        self._result = _Written(error="it broke off, see the traceback")
        try:
            self._result = self._write(snapshot)
        finally:
            if self._result.error:  # the ranks may agree on it much later
                self._say_failed(snapshot.step, self._result.error)
                self._result = replace(self._result, is_told=True)
            self.written += 1

    def _write(self, snapshot: Snapshot) -> _Written:
        nan = _first_nan(snapshot)
        if nan:
            return _Written(nan=nan)
        partial = self._folder
        try:
            partial = open_partial(self._folder, snapshot.step, self.rank.attempt)
            paths = []
            if snapshot.shards is not None:  # first: no rank may fail before a collective
                paths += self._write_shards(snapshot.shards, partial / SHARDS)
            paths.append(partial / rank_file(self.rank.rank))
            _save(snapshot.own, paths[-1])
            if snapshot.model is not None and self.rank.rank == 0:
                paths.append(partial / MODEL_FILE)
                _save(snapshot.model, paths[-1])
            for path in (*paths, partial):
                fsync_path(path)
            files = tuple(record_file(partial, path) for path in paths)
            self._faults.at("save", self._started)
        except (Exception, CheckpointException) as error:  # all ranks have to know
            first = first_of(error)
            if is_of_storage(first):
                return _Written(error=words_of(first), full=is_full(first, self._folder))
            if snapshot.shards is not None and is_of_node(first):
                raise
            return _Written(unsavable=_unsavable(snapshot, error))
        return _Written(files=files)

    def _write_shards(self, shards: Callable[[Path], None], folder: Path) -> list[Path]:
        shards(folder)
        # torch.distributed.checkpoint names a rank's files __R_N.distcp; the rest is rank 0's.
        own = sorted(folder.glob(f"__{self.rank.rank}_*"))
        if self.rank.rank == 0:
            own += [path for path in folder.iterdir() if not path.name.startswith("__")]
        return own

    def _acceptable(self, parts: list[_Written], step: int) -> bool:
        nan = next((part.nan for part in parts if part.nan), "")
        if nan:
            raise DivergedError(nan, step, self.rank)
        broken = next((part.unsavable for part in parts if part.unsavable), None)
        if broken is not None:
            raise UnsavableError(broken)
        failed = any(part.error for part in parts)
        if failed and self.rank.rank == 0:  # nobody writes until all have agreed again
            discard_partials(self._folder)
            if any(part.full for part in parts):
                self._make_room()
        return not failed

    def _complain(self, step: int, parts: list[_Written]) -> None:
        """Rank 0 says it for all, unless it has said it of its own part."""
        errors = [part.error for part in parts if part.error]
        if errors and self.rank.rank == 0 and not parts[0].is_told:
            self._say_failed(step, errors[0])

    def _commit(self, snapshot: Snapshot, parts: list[_Written]) -> None:
        self._commit_ok = False
        self._faults.at("commit", self._started)
        rank = self.rank
        manifest = Manifest(
            step=snapshot.step,
            epoch=snapshot.epoch,
            samples=snapshot.samples,
            world_size=rank.world_size,
            accumulate=rank.batch.accumulate,
            config_hash=rank.config_hash,
            attempt=rank.attempt,
            time=time.time(),
            versions=installed_versions(),
            files=tuple(record for part in parts for record in part.files),
        )
        try:
            commit(open_partial(self._folder, snapshot.step, rank.attempt), manifest)
            self._commit_ok = True
            self._note_failed(snapshot.step)
            self.failed = None
        except OSError as error:
            self._say_failed(snapshot.step, words_of(error))
        else:
            self._prune(rank.checkpoint.keep_last)

    def _prune(self, keep_last: int) -> list[int]:
        every = self.rank.checkpoint.keep_every_n_steps
        try:
            return prune(self._folder, keep_last=keep_last, keep_every_n_steps=every)
        except OSError as error:
            say_loudly(f"old checkpoints cannot be deleted: {words_of(error)}")
            return []

    def _make_room(self) -> None:
        deleted = self._prune(keep_last=1)
        if deleted:
            say_loudly(f"the disk is full: deleted the checkpoints of steps {deleted}")

    def _say_failed(self, step: int, error: str) -> None:
        before = self.failed or FailedSaves(count=0, since_step=step, error="")
        self.failed = replace(before, count=before.count + 1, error=error)
        is_first = not any(self._folder.glob("step-*"))
        stays = "there is none yet" if is_first else "the newest one before it stays"
        goes_on = "" if self.is_last else "the training goes on, and "
        say_loudly(
            f"the checkpoint of step {step} could not be saved to {self._folder}: {error}; "
            f"{goes_on}{stays}"
        )

    def _note_failed(self, step: int) -> None:
        """Have the history keep that saves have failed, though this one came about; once."""
        if self.failed and not self._is_noted:
            self._is_noted = True
            attempt = self.rank.run.attempt(self.rank.attempt)
            leave_note(attempt, f"saves: {self.failed.text}; that of step {step} came about")

    def why_failed(self) -> str:
        """What the storage said of the save that failed last, on whichever rank. Collective."""
        own = _Written(error=self.failed.error if self.failed else "")
        return next((part.error for part in self._exchange(own) if part.error), "")

    def _exchange(self, own: _Written) -> list[_Written]:
        if self._group is None:
            return [own]
        parts: list[Any] = [None] * self.rank.world_size
        dist.all_gather_object(parts, own, group=self._group)
        return parts

    def _agree_on_commit(self, acceptable: bool) -> bool:
        ok = torch.tensor([int(acceptable and (self._commit_ok or self.rank.rank != 0))])
        if self._group is not None:
            dist.all_reduce(ok, op=dist.ReduceOp.MIN, group=self._group)
        return bool(ok.item())


def _save(state: Any, path: Path) -> None:
    # Into an open file: torch.save to a path makes of "No space left" an error of its own words.
    with path.open("wb") as stream:
        torch.save(state, stream)


def _unsavable(snapshot: Snapshot, error: BaseException) -> Unsavable:
    first = first_of(error)
    model = snapshot.model if snapshot.model is not None else snapshot.beside_shards
    state = {"model": model, "own": snapshot.own}
    cause = explain(first, state, snapshot.authors, user_frame(first))
    return replace(cause, traceback="".join(traceback.format_exception(error)))


def _first_nan(snapshot: Snapshot) -> str:
    state = snapshot.model.get("state_dict", {}) if isinstance(snapshot.model, dict) else {}
    for name in snapshot.parameters:
        if name in state and has_nan(state[name]):
            return name
    return ""


def has_nan(weight: torch.Tensor) -> bool:
    """Whether one of its numbers is NaN; on a GPU this waits for it."""
    return bool(torch.isnan(weight).any())
