"""The supervisor's clock leaves out the time in which the whole job was suspended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from hpc_train.supervisor.awake_clock import STOPPED_S, AwakeClock, awake_clock

pytestmark = pytest.mark.slow


def test_a_stop_is_left_out_and_what_a_busy_machine_takes_is_not() -> None:
    told = [0.0]
    clock = AwakeClock(lambda: told[0])
    for second, expected in ((1.0, 1.0), (1.0 + STOPPED_S, 1.0 + STOPPED_S), (3606.0, 6.0)):
        told[0] = second
        assert clock.now() == expected, second
    told[0] = 3607.5
    assert clock.now() == 7.5, "it goes on"
    told[0] = 9000.0
    assert clock.now() == 7.5, "twice"


def test_what_takes_long_without_a_stop_is_counted() -> None:
    """As where Slurm is asked, and nobody reads the clock meanwhile."""
    with awake_clock(time.monotonic) as now:
        began = now()
        time.sleep(STOPPED_S + 2)
        assert now() - began > STOPPED_S + 1


def test_a_stopped_process_does_not_count_the_stop() -> None:
    code = (
        "import time\n"
        "from hpc_train.supervisor.awake_clock import awake_clock\n"
        "with awake_clock(time.monotonic) as now:\n"
        "    began = now(), time.monotonic()\n"
        "    print('begun', flush=True)\n"
        "    input()\n"
        "    print(now() - began[0], time.monotonic() - began[1])\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes, text=True) as it:
        assert it.stdin
        assert it.stdout
        assert it.stdout.readline() == "begun\n"
        os.kill(it.pid, signal.SIGSTOP)
        time.sleep(STOPPED_S + 4)
        os.kill(it.pid, signal.SIGCONT)
        it.stdin.write("\n")
        it.stdin.close()
        awake_s, passed_s = map(float, it.stdout.read().split())
    assert passed_s > STOPPED_S + 3
    assert awake_s < STOPPED_S
