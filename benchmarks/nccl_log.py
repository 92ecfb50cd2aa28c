"""Reading a large log of NCCL's, against grep's counting of its lines."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.measure import compare, process, user_environment
from benchmarks.places import Places
from benchmarks.rows import Row, memory_row, row_of

PAIRS = 5
SIZE_BYTES = 200_000_000
TARGET = 10
TARGET_MB = 100
HOSTS = 64
RANKS = 8 * HOSTS


def rows(places: Places) -> Iterator[Row]:
    """`--explain` of 200 MB, by what the log consists of; then its memory."""
    kinds = {
        "a job's start again and again": lambda _: start_of_job(),
        "a training with a few warnings": lambda number: (
            training() if number % 3 else start_of_job()
        ),
        "collectives (SUBSYS=COLL)": collectives,
        "metrics by many capitals": lambda number: (
            capitals(number) if number else "NCCL version 2.21.5+cuda12.4\n"
        ),
    }
    largest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for kind, block in kinds.items():
            log = write_log(Path(folder) / "nccl.log", block)
            # Into a pipe: with /dev/null as its output grep ends at the first match.
            grep = f"grep -cE 'NCCL (INFO|WARN)' {log} | cat"
            ours = [places.hpc_train, "preflight", "--explain", str(log)]
            compared = compare(
                partial(process, ours), partial(process, ["sh", "-c", grep]), pairs=PAIRS
            )
            yield row_of(f"200 MB, {kind} : grep -c", compared, at_most=TARGET)
            largest = max(largest, max_rss_mb(ours))
    yield memory_row("the same: memory of ours", largest, at_most_mb=TARGET_MB)


def write_log(
    path: Path, block: Callable[[int], str], size_bytes: int = SIZE_BYTES, end: str = ""
) -> Path:
    # Piece by piece: a child's memory is counted from that of the process it was made from.
    with path.open("w") as file:
        for number in count():
            file.write(block(number))
            if file.tell() >= size_bytes:
                break
        file.write(end)
    return path


def start_of_job() -> str:
    """What 64 hosts of 8 GPUs say while they connect."""
    lines = ["NCCL version 2.21.5+cuda12.4\n"]
    for rank in range(RANKS):
        host, gpu, after = rank // 8, rank % 8, (rank + 1) % RANKS
        pre = f"node{host:03d}:{4000 + rank}:{9000 + rank} [{gpu}] NCCL INFO "
        comm = f"ncclCommInitRank comm 0x55 rank {rank} nranks {RANKS} commId 0xabc - Init "
        lines += [f"{pre}Using network IB\n", f"{pre}{comm}START\n"]
        way = "via P2P/CUMEM" if after // 8 == host else f"[send] via NET/IB/{gpu}/GDRDMA"
        lines += [
            f"{pre}Channel {channel:02d}/0 : {rank}[{gpu}] -> {after}[{after % 8}] {way}\n"
            for channel in range(24)
        ]
        lines += [f"{pre}Connected all rings\n", f"{pre}{comm}COMPLETE\n"]
    return "".join(lines)


def training() -> str:
    lines = [
        f"[12:00:{i % 60:02d}] step {i} loss 0.{i} lr 1e-4 tokens/s {i}\n" for i in range(20_000)
    ]
    return "".join(lines) + "node001:1:2 [0] NCCL WARN the clock was set\n"


def collectives(number: int) -> str:
    first = 9_999 * number
    return "".join(
        f"node001:{i % 8}:{i % 8} [{i % 8}] NCCL INFO AllReduce: opCount {i:x} sendbuff 0x7f{i:x}"
        f" count {i} datatype 7 op 0 root 0 comm 0x55d5 [nranks=64] stream 0x55d{i:x}\n"
        for i in range(first, first + 9_999)
    )


def capitals(number: int) -> str:
    names = "ABCDEFGHIJKLMNOPRSTUVWXY"
    return "".join(
        f"step {step} {' '.join(f'{name}={(step * 7 + ord(name)) % 1000}' for name in names)}\n"
        for step in range(9_999 * number, 9_999 * (number + 1))
    )


def max_rss_mb(argv: list[str]) -> float:
    child = subprocess.Popen(argv, env=user_environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024
