"""Saving: every rank writes its own files, rank 0 commits once all are done.

Asynchronous, the training stalls for the copy to host memory alone; a thread writes, flushes and
hashes (torch.save, fsync and hashlib free the GIL). Whether all ranks are done, the ranks learn
from the agreement they make anyway, so nothing depends on what one node sees of another's files.
"""

from __future__ import annotations

import errno
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from hpc_train.errors import RunFailedError
from hpc_train.runs.atomic import fsync_path
from hpc_train.training.faults import RehearsedFaults
from hpc_train.training.rank_config import RankConfig, installed_versions
from hpc_train.training.resume.checkpoint import commit, open_partial, prune
from hpc_train.training.resume.manifest import FileRecord, Manifest, record_file
from hpc_train.training.resume.staging import StagingBuffers

MODEL_FILE = "model.ckpt"  # in Lightning's own format: `load_from_checkpoint` reads it
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
    """

    step: int
    epoch: int
    samples: int | None
    model: Any
    own: Any
    shards: Callable[[Path], None] | None = None
    parameters: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class _Written:
    """How one rank's part of a save went; sent to the others."""

    files: tuple[FileRecord, ...] = ()
    error: str = ""
    full: bool = False
    nan: str = ""


class Saver:
    """Saves of one rank. All ranks call the same methods in the same order.

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
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._started = 0
        self._settled = 0
        self._result = _Written()
        self._under_way: Snapshot | None = None
        self._commit_ok = True
        self.written = 0  # saves whose part this rank has written (or failed to)
        self.last_step: int | None = None  # of the newest save that was committed or is being

    @property
    def busy(self) -> bool:
        """Whether a save is under way on this rank."""
        return self._settled < self._started or self._jobs.unfinished_tasks > 0

    def prepare(self, snapshot: Snapshot) -> None:
        """Make the host buffers ahead of the first asynchronous save, in the background."""
        shapes = StagingBuffers.layout({"model": snapshot.model, "own": snapshot.own})
        self._run(lambda: self._host.prepare(shapes))

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
        self._run(lambda: self._write_in_background(job))

    def copy(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot that the training cannot change any more; valid until the next copy.

        Raises:
            RuntimeError: a save still needs the buffers.
        """
        if self.busy:
            raise RuntimeError("the host buffers are in use")
        copied = self._host.copy({"model": snapshot.model, "own": snapshot.own})
        return replace(snapshot, model=copied["model"], own=copied["own"])

    def wait_idle(self) -> None:
        """Wait until the background thread has nothing to do."""
        self._jobs.join()

    def settle(self, written_by_all: int) -> None:
        """Commit the save under way if every rank has written its part. Collective.

        Raises:
            RunFailedError: the weights that were to be saved are not numbers any more.
        """
        if self._settled == self._started or written_by_all < self._started:
            return
        self._settled = self._started
        snapshot, self._under_way = self._under_way, None
        assert snapshot is not None
        parts = self._exchange(self._result)
        if not self._acceptable(snapshot, parts):
            self.last_step = None
        elif self.rank.rank == 0:
            self._run(lambda: self._commit(snapshot, parts))

    def save(self, snapshot: Snapshot) -> bool:
        """Save now; returns on all ranks whether the checkpoint is there. Collective.

        A full disk is tried once more after the oldest checkpoints have been deleted.
        """
        self.finish()
        if snapshot.step == self.last_step and self._commit_ok:
            return True
        for _ in range(2):
            parts = self._exchange(self._write(snapshot))
            acceptable = self._acceptable(snapshot, parts)
            if acceptable and self.rank.rank == 0:
                self._commit(snapshot, parts)
            if self._agree_on_commit(acceptable):
                self.last_step = snapshot.step
                return True
            if not any(part.full for part in parts):
                break
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
            if self._result.error:
                self._complain(snapshot.step, self._result.error)
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
            torch.save(snapshot.own, paths[-1])
            if snapshot.model is not None and self.rank.rank == 0:
                paths.append(partial / MODEL_FILE)
                torch.save(snapshot.model, paths[-1])
            for path in (*paths, partial):
                fsync_path(path)
            files = tuple(record_file(partial, path) for path in paths)
        except (OSError, RuntimeError) as error:
            # PyTorchStreamWriter turns an OSError into a RuntimeError with the text alone.
            return _Written(error=_text(error), full=_is_full(error, self._folder))
        self._faults.at("save", self._started)
        return _Written(files=files)

    def _write_shards(self, shards: Callable[[Path], None], folder: Path) -> list[Path]:
        shards(folder)
        # torch.distributed.checkpoint names a rank's files __R_N.distcp; the rest is rank 0's.
        own = sorted(folder.glob(f"__{self.rank.rank}_*"))
        if self.rank.rank == 0:
            own += [path for path in folder.iterdir() if not path.name.startswith("__")]
        return own

    def _acceptable(self, snapshot: Snapshot, parts: list[_Written]) -> bool:
        nan = next((part.nan for part in parts if part.nan), "")
        if nan:
            raise RunFailedError(
                f"{nan} is NaN after step {snapshot.step}: the training has diverged",
                "nothing after the newest checkpoint is worth keeping: lower the learning rate, "
                "clip gradients, or look at the data of the last steps",
            )
        errors = [part.error for part in parts if part.error]
        if errors and self.rank.rank == 0:
            self._complain(snapshot.step, errors[0])
            if any(part.full for part in parts):
                self._make_room()
        return not errors

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
        except OSError as error:
            self._complain(snapshot.step, _text(error))
        else:
            self._prune(rank.checkpoint.keep_last)

    def _prune(self, keep_last: int) -> list[int]:
        every = self.rank.checkpoint.keep_every_n_steps
        try:
            return prune(self._folder, keep_last=keep_last, keep_every_n_steps=every)
        except OSError as error:
            say_loudly(f"old checkpoints cannot be deleted: {_text(error)}")
            return []

    def _make_room(self) -> None:
        deleted = self._prune(keep_last=1)
        if deleted:
            say_loudly(f"the disk is full: deleted the checkpoints of steps {deleted}")

    def _complain(self, step: int, error: str) -> None:
        say_loudly(
            f"the checkpoint of step {step} could not be saved to {self._folder}: {error}; "
            "the training goes on, and the newest one before it stays"
        )

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

    def _run(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="hpc-train save", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        # The training comes first; on Linux this is a thread's own nice value (sched(7)).
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        while True:
            job = self._jobs.get()
            try:
                job()
            except Exception:  # noqa: BLE001 (the jobs behind it are done all the same)
                traceback.print_exc()
            finally:
                self._jobs.task_done()


def _first_nan(snapshot: Snapshot) -> str:
    state = snapshot.model.get("state_dict", {}) if isinstance(snapshot.model, dict) else {}
    for name in snapshot.parameters:
        if name in state and bool(torch.isnan(state[name]).any()):
            return name
    return ""


def _is_full(error: BaseException, folder: Path) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    try:
        room = os.statvfs(folder)
    except OSError:
        return False
    return isinstance(error, RuntimeError) and room.f_bavail * room.f_frsize < 1 << 20


def _text(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
