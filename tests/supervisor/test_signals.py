"""What a supervisor hears, and what it leaves alone."""

from __future__ import annotations

import os
import signal

import pytest

from hpc_train.supervisor.signals import SupervisorSignals


def test_a_closed_terminal_asks_to_stop_and_later_words_go_nowhere() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signals = SupervisorSignals()
    signals.install(at_terminal=True)
    ours, theirs = os.openpty()
    signals.terminal = [theirs]
    os.close(ours)
    with pytest.raises(OSError, match="Input/output error"):
        os.write(theirs, b"x")
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGHUP)
    assert signals.hung_up
    assert signals.is_asked_to_stop
    assert not signals.terminated
    assert not signals.interrupts
    assert signals.first_s_ago is not None
    assert os.write(theirs, b"x") == 1
    os.close(theirs)


@pytest.mark.parametrize(
    ("before", "at_terminal"), [(signal.SIG_IGN, True), (signal.SIG_DFL, False)]
)
def test_under_nohup_and_in_a_job_of_slurms_it_is_left_as_it_was(
    before: signal.Handlers, at_terminal: bool
) -> None:
    signal.signal(signal.SIGHUP, before)
    SupervisorSignals().install(at_terminal=at_terminal)
    assert signal.getsignal(signal.SIGHUP) is before
