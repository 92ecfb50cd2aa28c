"""The folder of a run that somebody moves or removes while the run trains."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hpc_train.errors import RunFailedError
from hpc_train.plan.policy import Decision
from hpc_train.plan.states import MOVED, Action, Outcome, RunState
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir
from hpc_train.supervisor.outcome import AttemptOutcome, may_say
from hpc_train.supervisor.progress import attempt_steps, record_end

# It is no error of the training: another job, which knows the new place, can go on with it.
_NOT_FROM_HERE = "its job cannot go on where the folder was; hpc-train resume can, where it is now"
LOOK_AGAIN_S = 0.5  # a file system may say once that a file is not there


class FolderGoneError(RunFailedError):
    """The run's folder is not where the run was submitted to."""


@dataclass(frozen=True)
class Moved:
    """Where a folder was, where it is, and the newest checkpoint in it."""

    before: Path
    now: Path
    saved_step: int


@may_say(Outcome.USER_ERROR)
def judge_moved(seen: Moved) -> AttemptOutcome:
    """Name the outcome of an attempt whose folder was moved: its ranks cannot save any more."""
    kept = f"step {seen.saved_step} is saved" if seen.saved_step else "nothing was saved"
    reason = f"{MOVED}, from {seen.before} to {seen.now}; {kept}"
    return AttemptOutcome(outcome=Outcome.USER_ERROR, reason=reason)


@dataclass(frozen=True)
class RunFolder:
    """A run's folder, held open: so it is known again, and found wherever it is moved to.

    Attributes:
        identity: Its device and inode as it was opened; asked later, a server may have forgotten it
            (NFS: ESTALE).
    """

    run: RunDir
    descriptor: int
    identity: tuple[int, int]

    @property
    def is_there(self) -> bool:
        """Whether the run is at its path; asked twice before that is denied."""
        if self._seen():
            return True
        time.sleep(LOOK_AGAIN_S)
        return self._seen()

    def check(self) -> None:
        """Raise a FolderGoneError where the run is not at its path any more."""
        if not self.is_there:
            raise FolderGoneError(self._what(), self._fix())

    def _seen(self) -> bool:
        try:
            there = self.run.path.stat()
            self.run.plan.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # a file system that does not answer is no moved folder
        # Some file systems number a folder anew: then it counts where the kernel has it.
        is_same = (there.st_dev, there.st_ino) == self.identity
        return is_same or self._held_at == self.run.path.resolve()

    @property
    def _held_at(self) -> Path:
        return Path(f"/proc/self/fd/{self.descriptor}").resolve()

    @property
    def moved(self) -> RunDir | None:
        """The run in its new place; None where it is no more."""
        place = RunDir(self._held_at)
        return place if place.plan.exists() and place.path != self.run.path else None

    def close_attempt(self) -> None:
        """Tell the history of a moved run how its open attempt ended."""
        moved = self.moved
        attempts = attempts_in(read_events(moved.events)) if moved else []
        if moved is None or not attempts or attempts[-1].ended is not None:
            return
        number, first = attempts[-1].attempt, attempts[-1].first_step
        ending = judge_moved(Moved(self.run.path, moved.path, newest_step(moved)))
        assert ending is not None
        record_end(moved, number, ending, attempt_steps(moved, number, assumed_first=first))
        decided = Decision(action=Action.STOP, reason=_NOT_FROM_HERE, state=RunState.FAILED)
        told = {"attempt": number, "reason": decided.reason}
        for kind, more in (
            (EventKind.DECIDED, {"action": decided.action.value, "exclude": []}),
            (EventKind.RUN_ENDED, {"state": decided.state.value}),
        ):
            append_event(moved.events, Event(time.time(), kind, {**told, **more}))

    def _what(self) -> str:
        what = f"moved to {self.moved.path}" if self.moved else "removed"
        return f"the run's folder {self.run.path} was {what} while it ran: its ranks are ended"

    def _fix(self) -> str:
        if self.moved is None:
            return "nothing of it is left; submit it anew"
        return f"hpc-train resume {self.moved.path}"


@contextlib.contextmanager
def watched_folder(run: RunDir) -> Iterator[RunFolder]:
    """Hold the folder for the time of the block; what fails since it is gone is told as that.

    Raises:
        FolderGoneError: The folder was moved or removed.
    """
    descriptor = os.open(run.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    held = os.fstat(descriptor)
    folder = RunFolder(run, descriptor, (held.st_dev, held.st_ino))
    try:
        yield folder
    except FolderGoneError:
        folder.close_attempt()
        raise
    except OSError:
        if not folder.is_there:
            folder.close_attempt()
        folder.check()
        raise
    finally:
        os.close(descriptor)
