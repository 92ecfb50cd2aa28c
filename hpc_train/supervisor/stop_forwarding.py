"""What the supervisor looks after while the ranks run: stops that reached it, and progress."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hpc_train.runs.ranks import read_heartbeat
from hpc_train.slurm.srun_words import waits_for
from hpc_train.supervisor.launch import Ranks
from hpc_train.supervisor.notices import StragglerWatch

if TYPE_CHECKING:
    from hpc_train.supervisor.attempt import Attempt

CANCEL_GRACE_S = 60.0
WAITS_S = 5.0  # a step that has just ended holds its nodes a moment longer
SAY_EVERY_S = 10.0  # in the first minute; then once a minute, so that a long job's log stays short


class StopForwarding:
    """Called about once a second by the watch."""

    def __init__(self, attempt: Attempt, ranks: Ranks) -> None:
        self.attempt = attempt
        self.ranks = ranks
        self.began = time.monotonic()
        self.asked_at: float | None = None
        self.say_at = self.began + SAY_EVERY_S
        self.said_step = -1
        self.said_waiting = not attempt.allocation.is_slurm
        self.stragglers = StragglerWatch(attempt)

    def look(self) -> None:
        """Pass a stop on to the ranks, and say how far they are."""
        self.attempt.check_folder()
        self._stop()
        self._waiting()
        self.attempt.look_for_beginning()
        self.attempt.look_for_notes()
        self._progress(time.monotonic())
        self.stragglers.look()

    def _waiting(self) -> None:
        """Say once why srun has not started the ranks yet."""
        is_early = time.monotonic() - self.began < WAITS_S
        if is_early or self.said_waiting or self.attempt.beginning_told:
            return
        if why := waits_for(self.ranks.said()):
            self.said_waiting = True
            self.attempt.log.say(f"the ranks have not started: {why}")

    def _stop(self) -> None:
        """By the run's `stop` file; the second Ctrl-C kills."""
        signals = self.attempt.signals
        if self.asked_at is None and signals.is_asked_to_stop:
            self.asked_at = time.monotonic()
            self.attempt.run.stop.touch()
            again = "; Ctrl-C again kills them" if signals.interrupts else ""
            self.attempt.log.say(f"asked to stop: the ranks save at the next step{again}")
        overdue = self.asked_at is not None and time.monotonic() - self.asked_at > CANCEL_GRACE_S
        if signals.interrupts > 1 or (overdue and not self.attempt.allocation.is_slurm):
            self.ranks.kill()

    def _progress(self, now: float) -> None:
        if now < self.say_at:
            return
        self.say_at = now + (SAY_EVERY_S if now - self.began < 60 else 60.0)
        beat = read_heartbeat(self.attempt.folder.heartbeat(0))
        if beat is None or beat.step == self.said_step:
            return
        self.said_step = beat.step
        pace = f", {beat.step_time_s:.3g} s a step" if beat.step_time_s is not None else ""
        self.attempt.log.say(f"step {beat.step} ({beat.phase}{pace})")
