"""A data worker that ends by a signal, in each way that torch tells of it.

torch raises its error wherever the main thread is as the worker ends: in a hook of pytest's or
of hypothesis's on the garbage collector it would be lost. So each runs in a process of its own.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hpc_train.training.failures.dead_worker import dead_worker, unhear_workers
from hpc_train.training.rank_failure import RankFailure, failure_of

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader")
T = TypeVar("T")
KILLED = "is killed by signal: Killed"


class Dies(Dataset[torch.Tensor]):
    def __init__(self, how: int = signal.SIGKILL) -> None:
        self.how = how

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 3 and torch.utils.data.get_worker_info() is not None:
            os.kill(os.getpid(), self.how)
        return torch.ones(100)

    def __len__(self) -> int:
        return 64


class Raises(Dies):
    def __getitem__(self, index: int) -> torch.Tensor:
        raise ConnectionResetError(104, "Connection reset by peer")


def died(dataset: Dataset[torch.Tensor], workers: int) -> BaseException:
    """What is caught as a rank catches it: a worker's end may be signalled as that is done."""
    try:
        list(DataLoader(dataset, batch_size=1, num_workers=workers))
    except Exception as error:  # noqa: BLE001 - torch raises several
        try:
            unhear_workers()
        except RuntimeError:
            unhear_workers()
        return error
    raise AssertionError("no worker ended")


def plain() -> None:
    """A program without hooks, as a rank is."""
    gc.callbacks.clear()
    sys.unraisablehook = sys.__unraisablehook__
    warnings.simplefilter("ignore")


def in_a_process_of_its_own(call: Callable[..., T], *args: object) -> T:
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=fork, initializer=plain) as pool:
        return pool.submit(call, *args).result()


def failure(dataset: Dataset[torch.Tensor], workers: int) -> RankFailure:
    return failure_of(died(dataset, workers))


def said_dead(dataset: Dataset[torch.Tensor], workers: int) -> str:
    return dead_worker(died(dataset, workers))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_worker_that_was_killed_is_told(workers: int) -> None:
    told = in_a_process_of_its_own(failure, Dies(), workers)
    assert KILLED in told.error
    assert "Errno 104" not in told.error
    assert (told.kind, told.where) == ("worker_killed", "")


class FollowedError(RuntimeError):
    """While it is told, another worker's end is signalled, as of a second loader."""

    def __str__(self) -> str:
        os.kill(os.getpid(), signal.SIGCHLD)
        return "the loss is no number"


def raise_as_torch_does(_number: int, _frame: object) -> None:
    raise RuntimeError(f"DataLoader worker (pid 7) {KILLED}. ")


def told_beside_a_dying_worker() -> tuple[RankFailure, bool]:
    signal.signal(signal.SIGCHLD, raise_as_torch_does)
    told = failure_of(FollowedError())
    return told, signal.getsignal(signal.SIGCHLD) is raise_as_torch_does


def test_a_worker_that_ends_while_another_end_is_told_does_not_break_it_off() -> None:
    told, is_heard_again = in_a_process_of_its_own(told_beside_a_dying_worker)
    assert "the loss is no number" in told.error
    assert is_heard_again


def told_after(said: str) -> str:
    """The handler raises `said` as it is being taken away."""
    real, raised = signal.signal, []

    def handler(number: int, _frame: object) -> None:
        raised.append(number)
        raise RuntimeError(said)

    def late(number: int, new: object) -> object:
        if not raised:
            os.kill(os.getpid(), signal.SIGCHLD)
        return real(number, new)  # type: ignore[arg-type]

    signal.signal(signal.SIGCHLD, handler)
    signal.signal = late  # type: ignore[assignment]
    return failure_of(ValueError("a shape")).error


def test_a_worker_that_ends_just_before_is_no_other_end() -> None:
    assert "a shape" in in_a_process_of_its_own(told_after, f"DataLoader worker (pid 7) {KILLED}. ")


def test_what_a_program_s_own_handler_raises_is_not_hidden() -> None:
    with pytest.raises(RuntimeError, match="no worker"):
        in_a_process_of_its_own(told_after, "no worker of torch's")


def test_one_that_another_signal_ended_is_not_told_as_killed_for_memory() -> None:
    told = in_a_process_of_its_own(failure, Dies(signal.SIGABRT), 1)
    assert told.error.startswith("DataLoader worker (pid")
    assert KILLED not in told.error
    assert told.kind == "user"


def lost_connection() -> tuple[str, int]:
    """As it is raised where the worker's end is seen before its signal is handled."""
    iterator = iter(DataLoader(Dies(), num_workers=1))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker = iterator._workers[0]  # type: ignore[attr-defined]
    os.kill(worker.pid, signal.SIGKILL)
    names = {"self": iterator, "__name__": "torch.utils.data.dataloader"}
    inner = {"__name__": "multiprocessing.connection"}
    exec("def recv():\n raise ConnectionResetError(104, 'Connection reset by peer')", inner)
    exec("def get(self, recv):\n recv()", names)
    with pytest.raises(ConnectionResetError) as caught:
        names["get"](iterator, inner["recv"])  # type: ignore[operator]
    return dead_worker(caught.value), worker.pid


def test_a_lost_connection_of_the_loaders_is_a_worker_s_end() -> None:
    told, pid = in_a_process_of_its_own(lost_connection)
    assert told == f"DataLoader worker (pid {pid}) {KILLED}"


def test_a_connection_that_a_program_loses_by_itself_is_no_worker() -> None:
    assert in_a_process_of_its_own(said_dead, Raises(), 0) == ""
    assert "Errno 104" in in_a_process_of_its_own(failure, Raises(), 0).error
    assert in_a_process_of_its_own(said_dead, Raises(), 1) == ""
    assert dead_worker(EOFError()) == ""
