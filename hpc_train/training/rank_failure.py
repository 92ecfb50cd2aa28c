"""How a rank ends: whose an exception is, where in the user's code, its exit code and record."""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NoReturn, Protocol

from hpc_train.errors import HpcTrainError, RunFailedError
from hpc_train.plan.plan import Batch
from hpc_train.plan.states import RankExit
from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import ENDED_ITSELF, UNSAVED, WORKER_KILLED, ExitRecord, write_exit
from hpc_train.training.failures.absent_interface import absent_interface
from hpc_train.training.failures.called_classes import uncalled_class
from hpc_train.training.failures.called_hooks import called_hook
from hpc_train.training.failures.changed_in_place import changed_in_place
from hpc_train.training.failures.collate_errors import wrong_collate
from hpc_train.training.failures.dead_worker import (
    dead_worker,
    is_killed,
    unhear_workers,
    workers_unheard,
)
from hpc_train.training.failures.empty_data import EmptySetError
from hpc_train.training.failures.failure_words import fix_of, said_by
from hpc_train.training.failures.frame_text import EXAMPLES, INSTALLED, PACKAGE, is_users
from hpc_train.training.failures.lengthless_set import lengthless_set
from hpc_train.training.failures.listed_sets import ListedSetsError, listed_sets
from hpc_train.training.failures.local_objects import local_object
from hpc_train.training.failures.lost_gradient import lost_gradient
from hpc_train.training.failures.sampleless_set import sampleless_set
from hpc_train.training.failures.samples_differ import (
    no_batch_of_samples,
    none_in_samples,
    samples_differ,
)
from hpc_train.training.failures.several_elements import several_elements
from hpc_train.training.failures.skipped_batch import skipped_batch
from hpc_train.training.failures.untransformed_sets import untransformed
from hpc_train.training.failures.users_method import method_that_returned
from hpc_train.training.failures.whole_batch import taken_dict
from hpc_train.training.failures.whole_given import whole_given
from hpc_train.training.failures.whole_predicted import whole_predicted
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.own_exit import EndedItselfError
from hpc_train.training.private.lightning_frames import in_teardown
from hpc_train.training.resume.stop import Stopped
from hpc_train.training.resume.unsavable import UnsavableError, UnsavedEndError
from hpc_train.training.resume.untrained import UntrainedError
from hpc_train.training.scripts.exit_values import fix_of_exit


class _Told(Protocol):
    """`file:line`, or nothing."""

    @property
    def where(self) -> str: ...


_USER_CODE = 1
_RESERVED = frozenset(int(code) for code in RankExit)

# What gloo, NCCL and c10d's TCPStore say when a peer or the way to it is gone. gloo raises plain
# RuntimeErrors whose text carries its source file (gloo/transport/tcp/{pair,unbound_buffer}.cc).
_NETWORK_TEXT = re.compile(
    r"gloo/transport|Connection closed by peer|Connection reset by peer|Broken pipe"
    r"|Application timeout caused pair closure|Socket [Tt]imeout|Socket closed"
    r"|Timed out waiting \d+ms for|Rank \d+ failed to pass monitoredBarrier"
    r"|No route to host|Network is unreachable|Connection refused"
    r"|NCCL communicator was aborted|ncclRemoteError|ncclSystemError|remote process exited"
    r"|unhandled system error|Watchdog caught collective operation timeout"
    r"|failed to recv, got 0 bytes|Stop_waiting|wait timeout after \d+ms"
)
# A DistBackendError that no other node will cure.
_NOT_NETWORK_TEXT = re.compile(
    r"ncclInvalidUsage|ncclInvalidArgument|ncclUnhandledCudaError|Duplicate GPU detected"
    r"|Detected mismatch between collectives"
)
_DIST_ERRORS = frozenset({"DistBackendError", "DistNetworkError", "DistStoreError"})
_GPU_MEMORY_ERRORS = frozenset({"OutOfMemoryError"})
_GPU_MEMORY_TEXT = re.compile(r"CUDA (error: )?out of memory|CUBLAS_STATUS_ALLOC_FAILED")
_FRAME_LINE = re.compile(r'^\s*File "([^"]+)", line (\d+), in ', re.MULTILINE)

# What names a place of the user's for what fails behind it, the likeliest cause first.
_BEHIND: Sequence[Callable[[BaseException], _Told]] = (
    *(lost_gradient, uncalled_class, taken_dict),
    *(
        listed_sets,
        untransformed,
        samples_differ,
        none_in_samples,
        no_batch_of_samples,
        sampleless_set,
        lengthless_set,
    ),
    *(whole_predicted, whole_given, wrong_collate, changed_in_place, several_elements),
)


class PeerError(HpcTrainError):
    """A peer or a file is out of this node's reach; another node or another try may do."""

    exit_code = int(RankExit.NETWORK)
    kind = "network"


class CaughtError(HpcTrainError):
    """A script ended well, and what it was to do had failed.

    Attributes:
        told: The exception that it caught, as a rank's end is told.
    """

    exit_code = RunFailedError.exit_code

    def __init__(self, message: str, told: RankFailure) -> None:
        super().__init__(message, told.fix)
        self.told = told


@dataclass(frozen=True, kw_only=True)
class RankFailure:
    """How a rank ended; the fields are those of `ExitRecord` with the same names."""

    code: int
    kind: str
    cause: str = ""
    error: str = ""
    where: str = ""
    traceback: str = ""
    fix: str = ""


@workers_unheard()
def failure_of(
    error: BaseException | None,
    batch: Batch | None = None,
    texts: Mapping[str, str] | None = None,
) -> RankFailure:
    """Judge what ended a rank; None is the end of its training.

    An exit code that the user's code chooses is kept, unless it means something here: 0 before
    the end of the training, and those of `RankExit`, become 1.

    Args:
        batch: What each rank takes of a global batch, where it trains.
        texts: Those among the arguments of its model and data, by key.
    """
    if error is None:
        return RankFailure(code=int(RankExit.FINISHED), kind="finished")
    if isinstance(error, Stopped):
        return RankFailure(code=int(RankExit.SAVED), kind="saved", cause=error.cause)
    code, kind = _code_and_kind(error)
    if isinstance(error, EndedItselfError):
        stack = "".join(traceback.format_list(error.stack))
        return RankFailure(
            code=code,
            kind=kind,
            error=str(error),
            where=_place(_lines(error.stack)),
            traceback=f"Traceback (most recent call last):\n{stack}{error}\n",
        )
    if isinstance(error, UnsavedEndError):
        return RankFailure(code=code, kind=UNSAVED, error=f"{error.message}; {error.hint}")
    if isinstance(error, UnsavableError):
        told = error.cause
        where, trace = told.where, told.traceback
        return RankFailure(code=code, kind=kind, error=str(error), where=where, traceback=trace)
    if isinstance(error, CaughtError):
        return replace(error.told, code=code, kind=kind, error=error.message)
    ours = error if isinstance(error, HpcTrainError) else None
    ours = _of_the_data(error, texts or {}) or ours
    where = _where(ours or error)
    fix = ours.hint if ours else fix_of_exit(error, where) or fix_of(error, batch, texts)
    said = str(ours) if ours else said_by(error)
    return RankFailure(
        code=code,
        kind=kind,
        error=f"{_without_stop(said)}; {fix}" if fix and not ours else said,
        where=where,
        traceback="" if ours else "".join(traceback.format_exception(error)),
        fix=fix,
    )


def _of_the_data(error: BaseException, texts: Mapping[str, str]) -> HpcTrainError | None:
    """What the train loader was refused for, with the user's keys or line."""
    if isinstance(error, EmptySetError):
        return error.of_keys(texts)
    return error.placed() if isinstance(error, ListedSetsError) else None


def _without_stop(said: str) -> str:
    """Without the full stop of a sentence, behind which a fix begins."""
    return said if said.endswith("..") else said.removesuffix(".")


def _where(error: BaseException) -> str:
    known = error.where if isinstance(error, HpcTrainError) else ""
    return known if known or isinstance(error, UntrainedError) else user_frame(error)


def before_teardown(error: BaseException) -> BaseException:
    """What went wrong first: the tear-down after an error may fail for want of what it made."""
    while error.__context__ is not None and not error.__suppress_context__:
        frames = traceback.extract_tb(error.__traceback__)
        if not any(in_teardown(frame.filename, frame.name) for frame in frames):
            break
        error = error.__context__
    return error


def record_exit(
    attempt: AttemptDir,
    error: BaseException | None,
    heartbeat: HeartbeatThread,
    *,
    first_step: int,
    early_end: str = "",
    kind_of_end: str = "finished",
    batch: Batch | None = None,
    texts: Mapping[str, str] | None = None,
) -> RankFailure:
    """Leave the rank's exit record, with the time of this call.

    Args:
        error: What ended it; None where its training is over.
        first_step: Optimizer steps in the checkpoint it went on from.
        early_end: What ended a training that is over before its last step.
        kind_of_end: "finished", or "left" where it was a script that knows of no training's end.
        batch, texts: See `failure_of`.
    """
    now = time.time()
    failure = failure_of(error, batch, texts)
    if error is None:
        failure = replace(failure, cause=early_end, kind=kind_of_end)
    if failure.kind in ("finished", "left", "saved"):
        heartbeat.end()
    record = ExitRecord(
        rank=heartbeat.rank,
        node=heartbeat.node,
        time=now,
        first_step=first_step,
        step=error.step if isinstance(error, Stopped) else heartbeat.step,
        phase=heartbeat.phase,
        **asdict(failure),
    )
    try:
        write_exit(attempt, record)
    except OSError as reason:  # a full or lost file system must not hide the exit code
        print(f"no exit record: {reason}", file=sys.stderr)  # noqa: T201 - a rank's log
    return failure


def leave(code: int) -> NoReturn:
    """End the process now: data workers are killed, streams flushed, nothing joins forever.

    Data workers have the stop signals blocked, so the SIGTERM by which multiprocessing ends them
    at exit would be waited for without end.
    """
    import multiprocessing

    unhear_workers()
    for child in multiprocessing.active_children():
        child.kill()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _code_and_kind(error: BaseException) -> tuple[int, str]:
    if isinstance(error, PeerError):
        return error.exit_code, error.kind
    if isinstance(error, HpcTrainError):
        return error.exit_code, "check"
    if isinstance(error, EndedItselfError):
        return _users_code(error.status & 0xFF), ENDED_ITSELF
    if isinstance(error, SystemExit):
        return _users_code(error.code if isinstance(error.code, int) else _USER_CODE), "user"
    chain = _chain(error)
    if any(_is_gpu_memory(item) for item in chain):
        return _USER_CODE, "gpu_memory"
    if any(_is_network(item) for item in chain):
        return int(RankExit.NETWORK), "network"
    return _USER_CODE, WORKER_KILLED if is_killed(dead_worker(error)) else "user"


def _users_code(chosen: int) -> int:
    return _USER_CODE if chosen in _RESERVED else chosen


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and those it was raised from, not those it was raised while handling."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    return chain


def is_of_node(error: BaseException) -> bool:
    """Whether peers, the network or a GPU's memory failed, whatever was asked of them."""
    return any(_is_gpu_memory(item) or _is_network(item) for item in _chain(error))


def _is_gpu_memory(error: BaseException) -> bool:
    # By name: this module is read before torch, whose class it is, may be imported.
    if type(error).__name__ in _GPU_MEMORY_ERRORS and type(error).__module__.startswith("torch"):
        return True
    return isinstance(error, RuntimeError) and bool(_GPU_MEMORY_TEXT.search(str(error)))


def _is_network(error: BaseException) -> bool:
    if not isinstance(error, RuntimeError) or _NOT_NETWORK_TEXT.search(str(error)):
        return False
    if absent_interface(error):
        return False
    return type(error).__name__ in _DIST_ERRORS or bool(_NETWORK_TEXT.search(str(error)))


def user_frame(error: BaseException) -> str:
    """`file:line` of the innermost frame in the user's own code.

    That is outside the standard library, installed packages and hpc_train (its examples count as
    the user's); of a hook that cannot be called as Lightning does, or whose value Lightning
    refuses, its def, and of a lambda that cannot be pickled, its own line. Where the user's
    package is itself installed, the innermost frame outside torch, Lightning and hpc_train; empty
    where there is none.
    """
    called = called_hook(error).where or skipped_batch(error).where or method_that_returned(error)
    if where := called or local_object(error).where:
        return where
    if where := next(filter(None, (told(error).where for told in _BEHIND)), ""):
        return where
    if dead_worker(error):  # it is told wherever the process happens to be
        return ""
    return _place(_lines(traceback.extract_tb(error.__traceback__)) + _worker_frames(str(error)))


def users_line() -> str:
    """`file:line` of the line of the user's that is being executed; empty where there is none."""
    return _place(_lines(traceback.extract_stack()))


def _place(frames: Sequence[tuple[str, int]]) -> str:
    for is_candidate in (is_users, _is_outside_frameworks):
        found = [f"{file}:{line}" for file, line in frames if is_candidate(file)]
        if found:
            return found[-1]
    return ""


def _lines(frames: traceback.StackSummary) -> list[tuple[str, int]]:
    return [(frame.filename, frame.lineno or 0) for frame in frames]


def _worker_frames(text: str) -> list[tuple[str, int]]:
    """Frames in a data worker, which torch hands over as text in the exception's message."""
    if "Original Traceback" not in text:
        return []
    return [(file, int(line)) for file, line in _FRAME_LINE.findall(text)]


def _is_outside_frameworks(file: str) -> bool:
    path = Path(file)
    if file.startswith("<") or path.is_relative_to(PACKAGE):
        return path.is_relative_to(EXAMPLES)
    if not any(part in INSTALLED for part in path.parts):
        return False
    frameworks = ("torch", "pytorch_lightning", "lightning_fabric", "lightning", "torchmetrics")
    return not any(part in frameworks for part in path.parts)
