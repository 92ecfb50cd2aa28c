"""A data worker that ends by a signal, in each way that torch tells of it."""

from __future__ import annotations

import os
import signal

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hpc_train.training.dead_worker import dead_worker
from hpc_train.training.rank_failure import failure_of

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader")
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
    with pytest.raises(Exception) as caught:
        list(DataLoader(dataset, batch_size=1, num_workers=workers))
    return caught.value


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_worker_that_was_killed_is_told(workers: int) -> None:
    failure = failure_of(died(Dies(), workers))
    assert KILLED in failure.error
    assert "Errno 104" not in failure.error
    assert (failure.kind, failure.where) == ("worker_killed", "")


def test_one_that_another_signal_ended_is_not_told_as_killed_for_memory() -> None:
    failure = failure_of(died(Dies(signal.SIGABRT), 1))
    assert failure.error.startswith("DataLoader worker (pid")
    assert KILLED not in failure.error
    assert failure.kind == "user"


def test_a_lost_connection_of_the_loaders_is_a_worker_s_end() -> None:
    """As it is raised where the worker's end is seen before its signal is handled."""
    loader = DataLoader(Dies(), num_workers=1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    iterator = iter(loader)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker = iterator._workers[0]  # type: ignore[attr-defined]
    os.kill(worker.pid, signal.SIGKILL)
    names = {"self": iterator, "__name__": "torch.utils.data.dataloader"}
    inner = {"__name__": "multiprocessing.connection"}
    exec("def recv():\n raise ConnectionResetError(104, 'Connection reset by peer')", inner)
    exec("def get(self, recv):\n recv()", names)
    with pytest.raises(ConnectionResetError) as caught:
        names["get"](iterator, inner["recv"])  # type: ignore[operator]
    assert dead_worker(caught.value) == f"DataLoader worker (pid {worker.pid}) {KILLED}"


def test_a_connection_that_a_program_loses_by_itself_is_no_worker() -> None:
    error = died(Raises(), 0)
    assert dead_worker(error) == ""
    assert "Errno 104" in failure_of(error).error
    assert dead_worker(died(Raises(), 1)) == ""
    assert dead_worker(EOFError()) == ""
