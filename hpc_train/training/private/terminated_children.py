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
    terminate, wait, poll = kind.terminate, kind.wait, kind.poll

    @functools.wraps(terminate)
    def mark_and_terminate(process: Any) -> None:
        if process.returncode is None and _has(process.pid, "SigBlk", signal.SIGTERM):
            process.kill()  # as of a data worker: nothing else reaches it
            return
        if process.pid < _MOST_PIDS:
            _marks[0][process.pid] = 1
        terminate(process)

    @functools.wraps(poll)
    def poll_and_wake(process: Any, flag: int = os.WNOHANG) -> Any:
        code = poll(process, flag)
        if code is None and _is_marked(process.pid):
            _wake(process.pid)
        return code

    @functools.wraps(wait)
    def wait_and_wake(process: Any, timeout: float | None = None) -> Any:
        if timeout is None and _is_marked(process.pid):
            while wait(process, _LOOK_S) is None:
                poll_and_wake(process)
        return wait(process, timeout)

    kind.terminate, kind.wait, kind.poll = mark_and_terminate, wait_and_wake, poll_and_wake


def _is_marked(pid: int) -> bool:
    return bool(_marks) and pid < _MOST_PIDS and bool(_marks[0][pid])


def _wake(pid: int) -> None:
    """Let a child go on to Python's handler of a signal that came just before it began to wait.

    Such a call, as of a lock, is not interrupted by it. Any other signal with a handler does that.
    """
    if _has(pid, "SigCgt", signal.SIGUSR2):
        os.kill(pid, signal.SIGUSR2)


def _has(pid: int, which: str, number: signal.Signals) -> bool:
    """By proc_pid_status(5); False where there is no /proc, or no such process any more."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    of = next((it.split()[1] for it in lines if it.startswith(f"{which}:")), "0")
    return bool(int(of, 16) >> (number - 1) & 1)
