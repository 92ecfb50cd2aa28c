"""Fails for real, in one way a process: what Python, torch, gloo and the shell say of it then.

`python -m tests.diagnose.produced FOLDER` writes a log a way (and of those of two ranks one each).
Torch is imported once; every failure is one of a process that is forked.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import multiprocessing
import os
import resource
import runpy
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

__all__ = ["ALONE", "TOGETHER"]


def disk_full() -> None:
    with Path("/dev/full").open("wb", buffering=0) as file:
        torch.save(torch.zeros(9), file)


def missing_module() -> None:
    runpy.run_path(str(_script("import a_module_that_nobody_has")))


def import_name() -> None:
    runpy.run_path(str(_script("from json import a_name_that_it_lacks")))


def file_missing() -> None:
    Path("/nowhere/train.bin").read_bytes()


def ctypes_library() -> None:
    ctypes.CDLL("libnothing_of_ours.so.1")


def arguments() -> None:
    argparse.ArgumentParser("train.py").parse_args(["--local-rank=0"])


def open_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    while True:
        os.open("/dev/null", os.O_RDONLY)


def host_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 34, 1 << 34))
    torch.empty(1 << 40)


def segfault() -> None:
    faulthandler.enable()
    os.kill(os.getpid(), signal.SIGSEGV)


def no_cuda() -> None:
    torch.zeros(1, device="cuda")


def port_in_use() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        dist.TCPStore("127.0.0.1", held.getsockname()[1], 1, is_master=True)


def nan() -> None:
    with torch.autograd.detect_anomaly():
        (torch.zeros(1, requires_grad=True).sqrt() * 0).sum().backward()


def weights_shape() -> None:
    torch.nn.Linear(2, 2).load_state_dict(torch.nn.Linear(3, 3).state_dict())


def state_dict() -> None:
    torch.nn.Linear(2, 2).load_state_dict({"module.weight": torch.zeros(2, 2)})


def cut_checkpoint() -> None:
    path = _script("").with_name("cut.ckpt")
    torch.save(torch.zeros(9999), path)
    os.truncate(path, 2000)
    torch.load(path)


class _Rows(Dataset):
    def __init__(self, how: Callable[[], None]) -> None:
        self.how = how

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        self.how()
        return index


def worker_killed() -> None:
    list(DataLoader(_Rows(lambda: os.kill(os.getpid(), signal.SIGKILL)), num_workers=1))


def unused_parameters() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
    layers.forward = lambda rows: layers[0](rows)
    model = DistributedDataParallel(layers)
    for _ in range(2):
        model(torch.zeros(1, 2)).sum().backward()


def _script(text: str) -> Path:
    path = Path(f"script-{os.getpid()}.py")
    path.write_text(text)
    return path


def _meet(rank: int, store: str) -> None:
    met = dist.FileStore(store, 2)
    dist.init_process_group("gloo", store=met, rank=rank, world_size=2)


def gloo_timeout(rank: int, store: str) -> None:
    """Rank 1 is in something else while rank 0 waits for it."""
    _meet(rank, store)
    impatient = dist.new_group(timeout=timedelta(seconds=10))
    if rank == 0:
        dist.all_reduce(torch.zeros(1), group=impatient)
    time.sleep(600)


def barrier(rank: int, store: str) -> None:
    _meet(rank, store)
    if rank == 0:
        dist.monitored_barrier(timeout=timedelta(seconds=3))
    time.sleep(600)


def collective_shapes(rank: int, store: str) -> None:
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    _meet(rank, store)
    dist.all_reduce(torch.zeros(1 + rank))


ALONE = (
    *(disk_full, missing_module, import_name, file_missing, ctypes_library, arguments, open_files),
    *(host_memory, segfault, no_cuda, port_in_use, nan, state_dict, cut_checkpoint, worker_killed),
    *(unused_parameters, weights_shape),
)
TOGETHER = (gloo_timeout, barrier, collective_shapes)


def _fail(log: Path, work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    with log.open("ab") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    print("step 11 loss 0.5\nstep 12 loss 0.4", flush=True)
    try:
        work(*arguments)
    except Exception:  # noqa: BLE001 - this is what a log of it is wanted for
        traceback.print_exc()
        os._exit(1)
    except SystemExit as error:
        os._exit(int(error.code or 0))
    os._exit(0)


def main() -> None:
    folder = Path(sys.argv[1])
    os.chdir(folder)
    fork = multiprocessing.get_context("fork")

    def start(name: str, work: Callable[..., None], *arguments: object) -> object:
        process = fork.Process(target=_fail, args=(folder / name, work, arguments))
        process.start()
        return process

    started = [start(f"{work.__name__}.log", work) for work in ALONE]
    for work in TOGETHER:
        store = str(folder / f"{work.__name__}.store")
        (folder / work.__name__).mkdir()
        ranks = [start(f"{work.__name__}/rank-{rank}.log", work, rank, store) for rank in (0, 1)]
        ranks[0].join()  # type: ignore[attr-defined]
        ranks[1].kill()  # type: ignore[attr-defined]
        started += ranks
    for process in started:
        process.join()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
