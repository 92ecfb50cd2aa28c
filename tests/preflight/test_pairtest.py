"""What one test between two processes makes of the time in which they had no CPU."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.probes import pairtest
from hpc_train.preflight.probes.cpu_wait import CpuWait
from hpc_train.preflight.probes.pairtest import PairPlan, measure, rate_gbps, ready_share

TOKEN = b"t" * 32
SERVER = (  # which says that it waited for an eighth of a second, whenever it is asked
    "from hpc_train.preflight.probes.cpu_wait import CpuWait\n"
    "from hpc_train.preflight.probes.pairtest import DataServer\n"
    "CpuWait.seconds = lambda self: 0.125\n"
    f"server = DataServer({TOKEN!r})\n"
    "print(server.port, flush=True)\n"
    "input()\n"
)
SPIN = "while True: pass"


@pytest.fixture
def one_cpu() -> Iterator[None]:
    """This process and its children share one CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


@pytest.fixture
def port() -> Iterator[int]:
    """Of a data server in a process of its own."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=pipe, stdout=pipe) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.kill()


MB = 1_000_000


@pytest.mark.parametrize(
    ("waited_s", "gbps"),
    [
        ((0.0, 0.0), 1.0),
        ((0.5, 0.0), 2.0),
        ((0.0, 0.5), 2.0),
        ((0.5, 0.5), 4.0),
        ((0.99, 0.99), 10.0),  # too little is left to tell
        ((2.0, 0.0), 10.0),
    ],
)
def test_the_time_without_a_cpu_is_not_counted(waited_s: tuple[float, float], gbps: float) -> None:
    assert rate_gbps(125 * MB, 1.0, waited_s, []) == pytest.approx(gbps)


def test_a_slow_rate_is_not_made_a_fast_one_by_busy_cpus() -> None:
    """10 Mbit/s, and both sides had a CPU for a tenth of the time."""
    slow = rate_gbps(MB // 4, 0.2, (0.18, 0.18), [0.01] * 10)
    assert slow < Thresholds().slow_fail * 1.0


@pytest.mark.parametrize(
    ("waited_s", "share"),
    [((0.0, 0.0), 1.0), ((0.1, 0.0), 0.5), ((0.1, 0.1), 0.25), ((0.3, 0.0), 0.0)],
)
def test_how_far_the_cpus_were_there_is_of_both_sides(
    waited_s: tuple[float, float], share: float
) -> None:
    assert ready_share(0.2, waited_s) == pytest.approx(share)


def test_of_many_windows_the_best_quarter_counts() -> None:
    windows = [0.1, 5.0, 0.1, 5.0, 0.1, 0.1, 0.1, 0.1]
    assert rate_gbps(MB, 1.0, (0.0, 0.0), windows) == 0.1
    assert rate_gbps(MB, 1.0, (0.0, 0.0), [*windows, 6.0]) == 5.0


def test_the_side_that_receives_is_told_how_long_the_other_one_waited(
    monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    seen: list[tuple[float, float]] = []

    def noted(*args: Any) -> float:
        seen.append(args[2])
        return rate_gbps(*args)

    monkeypatch.setattr(pairtest, "rate_gbps", noted)
    plan = PairPlan(id="1" * 8, address="127.0.0.1", port=port, deadline_s=60.0)
    measured = measure(plan, TOKEN)
    assert measured.error is None
    assert [theirs for _, theirs in seen] == [0.125]  # this side received once
    assert measured.ready_share_ab is not None
    assert measured.ready_share_ba is not None
    assert 0 <= measured.ready_share_ba < 1, "the other side had waited"


def test_the_wait_for_a_cpu_is_the_threads_own(one_cpu: None) -> None:
    with busy(2), CpuWait() as waited:
        while waited.seconds() < 0.01:
            pass
    with CpuWait() as waited:
        first = waited.seconds()
    assert first < 0.01


@pytest.mark.parametrize("content", [None, "", "12"])
def test_a_kernel_without_the_statistics_never_waited(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "schedstat"
    if content is not None:
        path.write_text(content)
    with CpuWait(str(path)) as waited:
        assert waited.seconds() == 0.0
