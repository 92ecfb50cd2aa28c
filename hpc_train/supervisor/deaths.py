"""Which ranks ended, and how, in the words of their launcher: srun or torch's elastic launcher."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

__all__ = ["Death", "deaths_in_elastic_log", "deaths_in_srun_log"]


@dataclass(frozen=True, kw_only=True)
class Death:
    """A rank's end as its launcher saw it; `signal` is 0 where it exited by itself."""

    rank: int
    node: str = ""
    code: int = 0
    signal: int = 0


# srun(1): "srun: error: node2: tasks 4-5: Exited with exit code 1", "...: task 5: Killed".
SRUN_TASK = re.compile(r"srun: error: ([^\s:]+): tasks? ([\d,\-\[\]]+): (.+)")
SRUN_GIVES_UP = re.compile(r"srun: (?:Terminating|Force Terminated)")
SRUN_WORDS = {signal.strsignal(number): int(number) for number in signal.valid_signals()}


def deaths_in_srun_log(text: str) -> list[Death]:
    """The tasks that ended before srun began to stop the others, in srun's order."""
    deaths: list[Death] = []
    for line in text.splitlines():
        if SRUN_GIVES_UP.search(line) and deaths:
            break
        found = SRUN_TASK.search(line)
        if found:
            node, tasks, words = found.groups()
            code, number = _srun_words(words)
            deaths += [
                Death(rank=rank, node=node, code=code, signal=number) for rank in _ranks(tasks)
            ]
    return deaths


def _srun_words(words: str) -> tuple[int, int]:
    exited = re.search(r"[Ee]xit(?:ed with exit)? code (\d+)", words)
    if exited:
        return int(exited.group(1)), 0
    name = words.split("(")[0].strip()
    return 0, SRUN_WORDS.get(name, 9 if "Memory" in words else 0)


def _ranks(text: str) -> list[int]:
    ranks: list[int] = []
    for part in text.strip("[]").split(","):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


# torch.distributed.elastic.multiprocessing.errors.ChildFailedError prints such blocks.
ELASTIC_BLOCK = re.compile(
    r"rank\s+: (\d+) \(local_rank: \d+\)\s+exitcode\s+: (-?\d+) \(pid: \d+\)", re.MULTILINE
)


def deaths_in_elastic_log(text: str) -> list[Death]:
    """The ranks that an elastic launcher reports, its root cause first."""
    _, _, root = text.partition("Root Cause")
    found = ELASTIC_BLOCK.findall(root) + ELASTIC_BLOCK.findall(text)
    unique: dict[int, int] = {}
    for rank, code in found:
        unique.setdefault(int(rank), int(code))
    return [
        Death(rank=rank, code=max(code, 0), signal=max(-code, 0)) for rank, code in unique.items()
    ]
