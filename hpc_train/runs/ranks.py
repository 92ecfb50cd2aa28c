"""What ranks leave for their supervisor: where they began, that they move, how they ended."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hpc_train.codec import decode
from hpc_train.runs.atomic import write_text
from hpc_train.runs.layout import AttemptDir

T = TypeVar("T")
WORKER_KILLED = "worker_killed"  # the kind of an end that a killed data worker brought about
ENDED_ITSELF = "ended_itself"  # the kind of an exit by os._exit, before the rank's work was done
UNSAVED = "unsaved"  # the kind of an exit after the last step, whose state is on no disk


@dataclass(frozen=True, kw_only=True)
class ExitRecord:
    """How one rank ended, in its own words. A rank that was killed leaves none.

    Attributes:
        time: Seconds since the epoch, on the rank's own clock.
        code: As in `plan.states.RankExit`; anything else is the user's.
        kind: finished, left (a script ended with 0, whatever that means), saved, network, storage
            (a file is out of reach), watchdog, check (a clear message of ours), gpu_memory, unsaved
            (after the last step), ended_itself (os._exit) or user; what `code` cannot tell apart.
        cause: Of a rank that saved and left: SIGTERM, SIGUSR1, SIGUSR2 or "stop file", as agreed
            between the ranks (any one of them suffices). Of one that finished before its last
            step: what ended its training.
        first_step: Optimizer steps in the checkpoint it went on from; 0 for a fresh start.
        step: Optimizer steps taken when it ended; None before training began.
        phase: start, train, validate, save, end.
        error: Type and message of the exception, one line, with the fix; empty without one.
        where: `file:line` of the innermost frame of the user's own code.
        traceback: The whole traceback; empty without one.
        fix: What to do, where more is known than the message says.
    """

    rank: int
    node: str
    time: float
    code: int
    kind: str = "user"
    cause: str = ""
    first_step: int = 0
    step: int | None = None
    phase: str = "start"
    error: str = ""
    where: str = ""
    traceback: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Damaged:
    """A checkpoint that no attempt can go on from, by its step, and what is wrong with it.

    Attributes:
        moved_aside: Its name is free again; False where the file system did not let us.
    """

    step: int
    reason: str
    moved_aside: bool = True


@dataclass(frozen=True)
class Beginning:
    """Where the ranks of an attempt began. Only they know: the newest checkpoint may be damaged.

    Attributes:
        step: Optimizer steps in the checkpoint they go on from; 0 where there is none.
        damaged: Newer checkpoints that were passed over, newest first.
        ranks: How many there are, where a script decides it; None where the plan does.
    """

    step: int
    damaged: tuple[Damaged, ...] = ()
    ranks: int | None = None


@dataclass(frozen=True, kw_only=True)
class FailedSaves:
    """Checkpoints that the storage refused, one after the other, up to now.

    Attributes:
        since_step: Optimizer steps at the first of them.
        error: What the storage said of the newest one.
    """

    count: int
    since_step: int
    error: str

    @property
    def text(self) -> str:
        """`3 failed since step 15: No space left on device`."""
        return f"{self.count} failed since step {self.since_step}: {self.error}"


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """A rank's sign of life, rewritten about every second from a thread of its own.

    Attributes:
        time: When it was written, so a stopped process (SIGSTOP) is seen.
        moved: When `step`, `batch` or `phase` last changed, so a hung collective is seen.
        step: Optimizer steps taken since the run's first attempt.
        step_time_s: Median of the last steps; None until there are some.
        own_s: Of these, what this rank needs for itself, before it may wait for others: data and
            forward pass (of an accumulation, the first); None where nobody tells.
        steps: In all; None where nobody knows, as of a stream.
        epoch: The one at hand, from 1; `epochs` are all of them, None without an end.
        steps_per_s: Over the last half minute of training; None until there are two steps.
        metrics: The newest numbers of what a person watches.
        seconds: Spent in each phase so far; empty of a version that did not count them.
        ranks: How many there are, where a script decides it; None where the plan does.
        failed_saves: None where the newest save came about, or none was made.
    """

    rank: int
    node: str
    pid: int
    time: float
    moved: float
    phase: str
    step: int
    batch: int = 0
    step_time_s: float | None = None
    own_s: float | None = None
    steps: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    steps_per_s: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    ranks: int | None = None
    failed_saves: FailedSaves | None = None

    @property
    def eta_s(self) -> float | None:
        """Seconds to the training's end at this pace; None where the end is not known."""
        if self.steps is None or not self.steps_per_s:
            return None
        return max(0, self.steps - self.step) / self.steps_per_s


def write_beginning(attempt: AttemptDir, beginning: Beginning) -> None:
    """Leave it for the supervisor, durably: the node may go next.

    Raises:
        OSError: as the file system says.
    """
    write_text(attempt.beginning, json.dumps(dataclasses.asdict(beginning)) + "\n")


def read_beginning(attempt: AttemptDir) -> Beginning | None:
    """What rank 0 said; None where it has not come so far, or could not write it."""
    return _read(Beginning, attempt.beginning)


def write_exit(attempt: AttemptDir, record: ExitRecord) -> None:
    """Leave the record of one rank; it is durable, since the node may go next."""
    path = attempt.exit_record(record.rank)
    _make_folder(path)
    write_text(path, json.dumps(dataclasses.asdict(record)))


def write_heartbeat(attempt: AttemptDir, beat: Heartbeat) -> None:
    """Rewrite the sign of life of one rank."""
    _rewrite(attempt.heartbeat(beat.rank), json.dumps(dataclasses.asdict(beat)))


def write_heartbeats(path: Path, beats: Sequence[Heartbeat]) -> None:
    """Rewrite the signs of life of the ranks of one node (`AttemptDir.node_heartbeats`)."""
    _rewrite(path, json.dumps([dataclasses.asdict(beat) for beat in beats]))


def _make_folder(file: Path) -> None:
    """As RUN/attempts/K/FOLDER; not where the run is gone: who moves one gets no second one."""
    if file.parents[3].is_dir():
        file.parent.mkdir(parents=True, exist_ok=True)


def _rewrite(path: Path, text: str) -> None:
    try:
        write_text(path, text, durable=False)
    except FileNotFoundError:
        _make_folder(path)
        write_text(path, text, durable=False)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not path.exists():
            raise
        # A full disk must not look like a hang: what is there is overwritten, which needs no space.
        with path.open("r+", encoding="utf-8") as stream:
            stream.write(text.ljust(path.stat().st_size))


def leave_note(attempt: AttemptDir, text: str) -> None:
    """Have the run's history, and so `status`, say this; a full disk costs the note alone."""
    with contextlib.suppress(OSError), attempt.notes.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"text": text}) + "\n")


def read_notes(attempt: AttemptDir) -> list[str]:
    """What was left so far; a torn last line is read once it is whole."""
    notes = []
    with contextlib.suppress(OSError), attempt.notes.open(errors="replace") as stream:
        for line in stream:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                notes.append(str(json.loads(line)["text"]))
    return notes


def append_progress(attempt: AttemptDir, beat: Heartbeat) -> None:
    """Add where the training stands now; at worst a reader gets a torn last line.

    Raises:
        OSError: as the file system says.
    """
    with attempt.progress.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"time": round(beat.time, 3), "step": beat.step}) + "\n")


def read_progress(attempt: AttemptDir) -> list[tuple[float, int]]:
    """When the training was at which step, in seconds since the epoch; empty where nobody said."""
    points = []
    with contextlib.suppress(OSError), attempt.progress.open(errors="replace") as stream:
        for line in stream:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                document = json.loads(line)
                points.append((float(document["time"]), int(document["step"])))
    return points


def read_exits(attempt: AttemptDir) -> list[ExitRecord]:
    """All exit records of an attempt, by time."""
    records = _read_all(ExitRecord, attempt.exit_record(0).parent)
    return sorted(records, key=lambda record: record.time)


def read_heartbeats(attempt: AttemptDir) -> list[Heartbeat]:
    """The newest sign of life of every rank that gave one, by rank."""
    folder = attempt.heartbeat(0).parent
    beats = _read_all(Heartbeat, folder)
    for path in folder.glob("node-*.json"):
        with contextlib.suppress(OSError, ValueError, TypeError):
            beats += [decode(Heartbeat, one) for one in json.loads(path.read_text("utf-8"))]
    newest: dict[int, Heartbeat] = {}
    for beat in sorted(beats, key=lambda beat: beat.time):
        newest[beat.rank] = beat
    return [newest[rank] for rank in sorted(newest)]


def read_heartbeat(path: Path) -> Heartbeat | None:
    """One rank's newest sign of life; None where it gave none yet."""
    return _read(Heartbeat, path)


def _read_all(kind: type[T], folder: Path) -> list[T]:
    read = (_read(kind, path) for path in folder.glob("rank-*.json"))
    return [item for item in read if item is not None]


def _read(kind: type[T], path: Path) -> T | None:
    """None for what is not there, or is overwritten in place at this moment."""
    try:
        return decode(kind, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
