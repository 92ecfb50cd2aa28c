"""Signals for what an ended process has left in its group."""

from __future__ import annotations

import signal
import subprocess
import sys

from hpc_train.runs.process_group import signal_group


def test_what_a_child_left_in_its_group_is_ended_after_it() -> None:
    program = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
    argv = [sys.executable, "-c", program]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stdout is not None
        left = child.stdout.readline().strip()
        child.wait(timeout=60)
        assert left.isdigit()
        signal_group(child.pid, signal.SIGKILL, is_reaped=True)
        assert child.stdout.read() == "", "the pipe ends with who held it"


def test_a_stranger_with_the_number_of_a_child_that_was_reaped_is_let_live() -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
        signal_group(stranger.pid, signal.SIGKILL, is_reaped=True)
        assert stranger.poll() is None
        signal_group(stranger.pid, signal.SIGKILL, is_reaped=False)
        assert stranger.wait(timeout=60) == -signal.SIGKILL
        signal_group(stranger.pid, signal.SIGKILL, is_reaped=True)
