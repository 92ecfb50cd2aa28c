"""One test between two processes of this host, with its CPU to itself and with a busy one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.checks.pairs import Measured
from hpc_train.preflight.probes.cpu_wait import CpuWait
from hpc_train.preflight.probes.pairtest import PairPlan, measure

TOKEN = b"t" * 32
SERVER = (
    "from hpc_train.preflight.probes.pairtest import DataServer\n"
    f"server = DataServer({TOKEN!r})\n"
    "print(server.port, flush=True)\n"
    "input()\n"
)
SPIN = "while True: pass"


@pytest.fixture
def two_cpus() -> Iterator[None]:
    """This process and its children share two CPUs."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {*sorted(before)[:2]})
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


def trials(port: int, count: int) -> list[Measured]:
    plans = [PairPlan(id=f"{n:08d}", address="127.0.0.1", port=port) for n in range(count)]
    return [measure(plan, TOKEN) for plan in plans]


def test_a_busy_cpu_is_no_slow_link(two_cpus: None, port: int) -> None:
    """Neither side has more than a fifth of a CPU, and the pair is not called slow or late."""
    limits = Thresholds()
    usual = sorted(item.gbps_ab or 0.0 for item in trials(port, 3))[1]
    with busy(10):
        seen = trials(port, 5)
    assert not [item.error for item in seen if item.error]
    rates = sorted(rate or 0.0 for item in seen for rate in (item.gbps_ab, item.gbps_ba))
    assert rates[len(rates) // 2] > limits.slow_warn * usual, (rates, usual)
    assert sorted(item.latency_us or 0.0 for item in seen)[2] < limits.latency_floor_us


def test_the_wait_for_a_cpu_is_the_threads_own(two_cpus: None) -> None:
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
