"""A data worker that was killed: torch tells it in several ways, some of which name no worker."""

from __future__ import annotations

import multiprocessing.connection
import re
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from hpc_train.training.private.loader_workers import workers_of

# torch/utils/data/dataloader.py and _utils/signal_handling.py.
_TOLD = re.compile(
    r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) "
    r"(?:is killed by signal: \w[\w ]*\w|exited unexpectedly)"
)
_EXPLAINED = re.compile("is killed by signal")
_LOST = (ConnectionError, EOFError)
_UNEXPECTED = "exited unexpectedly"
_LOADER = "torch.utils.data.dataloader"
_WAIT_S = 2.0  # for the end of a worker whose connection is gone
_SHORT_S = 0.2


def dead_worker(error: BaseException) -> str:
    """`DataLoader worker (pid 7) is killed by signal: Killed`; empty where none has ended."""
    told = [found[0] for item in _chain(error) if (found := _TOLD.search(_own(item)))]
    if explained := next((it for it in told if _EXPLAINED.search(it)), ""):
        return explained
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if told:
        return _ended(frames) or told[0]
    modules = [frame.f_globals.get("__name__", "") for frame in frames]
    is_between = any(name.startswith("multiprocessing.") for name in modules)
    if not isinstance(error, _LOST) or _LOADER not in modules or not is_between:
        return ""
    return _ended(frames) or "DataLoader worker ended, and its connection with it"


def unhear_workers() -> Any:
    """From now on no worker's end is raised here; returns the handler until now.

    torch's handler of SIGCHLD raises wherever the main thread is
    (torch/utils/data/_utils/signal_handling.py): in what tells an end as well, for a worker of
    another loader, or for the same one, whose connection is lost before its end is signalled.
    What the handler raises as it is taken away is of a worker as well.
    """
    if threading.current_thread() is not threading.main_thread():  # where nothing is raised
        return None
    while True:
        try:
            return signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        except RuntimeError as raised:
            if _TOLD.search(str(raised)) is None:
                raise


@contextmanager
def workers_unheard() -> Iterator[None]:
    """While an end is being told, which a program may survive: see `unhear_workers`."""
    before = unhear_workers()
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGCHLD, before)


def is_killed(said: str) -> bool:
    """Whether `dead_worker` tells a SIGKILL, as of the kernel's for memory."""
    return said.endswith("signal: Killed")


def _own(error: BaseException) -> str:
    """What an exception of this process says: a worker's own comes with its traceback in it."""
    said = str(error)
    return said if isinstance(error, RuntimeError) and "Original Traceback" not in said else ""


def _ended(frames: list[FrameType]) -> str:
    """The loader's worker that has ended, with what ended it."""
    with workers_unheard():
        return _of_workers(workers_of(frame.f_locals.get("self") for frame in frames))


def _of_workers(workers: list[Any]) -> str:
    multiprocessing.connection.wait([it.sentinel for it in workers], _WAIT_S)
    for worker in workers:
        worker.join(_SHORT_S)  # its pipes close before it can be waited for
    ended = sorted((it.exitcode, it.pid) for it in workers if it.exitcode)  # a signal first
    for code, pid in ended[:1]:
        how = f"is killed by signal: {signal.strsignal(-code)}" if code < 0 else _UNEXPECTED
        return f"DataLoader worker (pid {pid}) {how}"
    return ""


def _chain(error: BaseException) -> list[BaseException]:
    """The exception, and those that it was raised from, or while they were handled."""
    chain, following = [error], error.__cause__ or error.__context__
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__ or following.__context__
    return chain
