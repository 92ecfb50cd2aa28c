"""Whole processes in pairs A B A B, so that a busy machine slows both sides alike."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

__all__ = ["BenchError", "Compared", "Cost", "compare", "process", "user_environment"]


class BenchError(Exception):
    """A benchmark could not be run; the message says what to do."""


@dataclass(frozen=True)
class Cost:
    """What a process took: by the clock, and in user and system time with its children's."""

    wall_s: float
    cpu_s: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)


@dataclass(frozen=True)
class Compared:
    """Medians over all pairs; the ratios are medians of each pair's own ratio."""

    ours: Cost
    peer: Cost
    wall_ratio: float
    cpu_ratio: float


def user_environment() -> dict[str, str]:
    """As of a user's shell: without settings of Python such as PYTHONDONTWRITEBYTECODE."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def process(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Cost:
    """Run a command to its end, by default in `user_environment()`.

    Raises:
        BenchError: it failed; with what it said.
    """
    began = time.perf_counter()
    child = subprocess.Popen(
        argv,
        env=user_environment() if env is None else env,
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - began
    child.stderr.close()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        words = said.decode(errors="replace").strip()
        raise BenchError(f"{' '.join(argv)} exited {child.returncode}: {words[-500:]}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime)


def compare(ours: Callable[[], Cost], peer: Callable[[], Cost], *, pairs: int) -> Compared:
    """Ours and the peer in turn, after one unmeasured call of each."""
    ours()
    peer()
    costs = [(ours(), peer()) for _ in range(pairs)]
    return Compared(
        ours=_middle([mine for mine, _ in costs]),
        peer=_middle([other for _, other in costs]),
        wall_ratio=median(mine.wall_s / other.wall_s for mine, other in costs),
        cpu_ratio=median(mine.cpu_s / other.cpu_s for mine, other in costs),
    )


def _middle(costs: Sequence[Cost]) -> Cost:
    return Cost(median(cost.wall_s for cost in costs), median(cost.cpu_s for cost in costs))
