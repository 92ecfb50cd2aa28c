"""`diagnose` of 1 GB of logs, against grep's counting with the words of the same rules."""

from __future__ import annotations

import random
import shlex
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import compare, process, user_environment
from benchmarks.nccl_log import capitals, max_rss_mb, start_of_job, training, write_log
from benchmarks.places import Places
from benchmarks.rows import Row, memory_row, row_of
from hpc_train.diagnose.first_pass import grep_pattern

PAIRS = 3
SIZE_BYTES = 1_000_000_000
TARGET = 2
TARGET_MB = 200
END = (
    "[rank3]: Traceback (most recent call last):\n"
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


def rows(places: Places) -> Iterator[Row]:
    """By what the log consists of, each with a failure at its end; then the memory."""
    kinds = {
        "progress bars and log lines": _lightning,
        "a training with a few warnings": lambda _: training(),
        "metrics by many capitals": capitals,
        "64 hosts' start of NCCL, then training": lambda n: training() if n else start_of_job(),
    }
    largest = 0.0
    words = user_environment() | {"LC_ALL": "C"}
    with tempfile.TemporaryDirectory() as folder:
        for kind, block in kinds.items():
            log = write_log(Path(folder) / "train.log", block, SIZE_BYTES, END)
            # Into a pipe: with /dev/null as its output grep ends at the first match.
            grep = f"LC_ALL={words['LC_ALL']} grep -acE {shlex.quote(grep_pattern())} {log} | cat"
            ours = [places.hpc_train, "diagnose", str(log)]
            finds = ["sh", "-c", f"{shlex.join(ours)}; [ $? = 3 ]"]
            compared = compare(
                partial(process, finds), partial(process, ["sh", "-c", grep]), pairs=PAIRS
            )
            yield row_of(f"1 GB, {kind} : grep -cE", compared, at_most=TARGET)
            largest = max(largest, max_rss_mb(ours))
    yield memory_row("the same: memory of ours, its grep included", largest, at_most_mb=TARGET_MB)


def _lightning(number: int) -> str:
    rng = random.Random(number)
    return "".join(
        f"2026-11-21 08:{i // 60 % 60:02d}:{i % 60:02d},123 INFO trainer.py:212] Epoch {number}:"
        f" {i % 100:3d}%|####    | {i}/20000 [00:{i % 60:02d}<01:11, {rng.random() * 30:.2f}it/s,"
        f" train_loss={rng.random():.3f}, lr={rng.random():.2e}]\n"
        for i in range(20_000)
    )
