"""What `Process.terminate()` does to a child that was forked off a rank, as of a Pool.

A child inherits the rank's handler of SIGTERM, which passes the signal over in it: Slurm sends it
to every process of a step (scancel(1)), and a worker that died of it would leave the rank without
data before it could save. By its parent's `terminate()` the same signal has to end it, and who has
sent it no handler of Python's is told. So the parent marks the child, in memory that they share.

`Popen` of undocumented `multiprocessing.popen_fork` is what all ways go through: a Pool waits
without end for the workers that it has terminated (multiprocessing/pool.py, `_terminate_pool`), and
Python at its end for children that are daemons (multiprocessing/util.py, `_exit_function`).
"""

from __future__ import annotations

import functools
import mmap
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hpc_train.training.private.after_import import after_import

_MOST_PIDS = 1 << 22  # Linux has no larger number, proc_sys_kernel(5): a byte for each
_LOOK_S = 0.1
_marks: list[mmap.mmap] = []  # one, once this process, or one that it was forked off, is a rank


def mark_terminated() -> None:
    """From now on mark the children of this process that are terminated, and of theirs."""
    if not _marks:
        _marks.append(mmap.mmap(-1, _MOST_PIDS))  # shared with children; no page is used as yet
        after_import({"multiprocessing.popen_fork": _meet})
        # What came before this the child has dropped (CPython, `_PySignal_AfterFork`).
        os.register_at_fork(after_in_child=end_if_terminated)


def end_if_terminated() -> None:
    """In a forked child: end as SIGTERM does without a handler, where its parent has asked it."""
    if _is_marked(os.getpid()):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def _meet(module: Any) -> None:
    kind = module.Popen
    kind.terminate, kind.poll = _marking(kind.terminate, kind), _waking(kind.poll)
    kind.wait = _looking(kind.wait)


def _marking(terminate: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    """Of a child that was forked alone: one by spawn or forkserver has Python's own handlers."""

    @functools.wraps(terminate)
    def mark_and_terminate(process: Any) -> None:
        if process.returncode is not None:
            return
        if _has_signal(_status(process.pid), "SigBlk", signal.SIGTERM):
            process.kill()  # as of a data worker: nothing else reaches it
            return
        if type(process) is kind and process.pid < _MOST_PIDS:
            _marks[0][process.pid] = 1
        terminate(process)

    return mark_and_terminate


def _waking(poll: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(poll)
    def poll_and_wake(process: Any, flag: int = os.WNOHANG) -> Any:
        code = poll(process, flag)
        if code is None:
            _wake(process.pid)
        elif _is_marked(process.pid):  # another child may be given its number
            _marks[0][process.pid] = 0
        return code

    return poll_and_wake


def _looking(wait: Callable[..., Any]) -> Callable[..., Any]:
    """Without a time limit it asks again and again, so that the child is woken."""

    @functools.wraps(wait)
    def look_and_wait(process: Any, timeout: float | None = None) -> Any:
        while timeout is None and _is_marked(process.pid) and _status(process.pid):
            if wait(process, _LOOK_S) is None:
                process.poll()
        return wait(process, timeout)

    return look_and_wait


def _is_marked(pid: int) -> bool:
    return bool(_marks) and pid < _MOST_PIDS and bool(_marks[0][pid])


def _wake(pid: int) -> None:
    """Let a terminated child go on to Python's handler, where the signal came before it waited.

    A call that waits, as for a lock, is not interrupted by a signal that came just before it. Any
    other signal with a handler does that.
    """
    status = _status(pid) if _is_marked(pid) else {}
    is_ours = status.get("PPid") == str(os.getpid())  # else its number is somebody else's by now
    if is_ours and _has_signal(status, "SigCgt", signal.SIGUSR2):
        os.kill(pid, signal.SIGUSR2)


def _status(pid: int) -> dict[str, str]:
    """By proc_pid_status(5); empty where there is no /proc, or no such process any more."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(it.split(":\t", 1) for it in lines.splitlines() if ":\t" in it)


def _has_signal(status: Mapping[str, str], which: str, number: signal.Signals) -> bool:
    return bool(int(status.get(which, "0"), 16) >> (number - 1) & 1)
