"""Staying with one run: its status again and again, with as few questions to Slurm as will do."""

from __future__ import annotations

import time
from collections.abc import Iterator

from hpc_train.backends.observe import SlurmAnswer, ask_slurm, observe, open_jobs
from hpc_train.errors import HpcTrainError
from hpc_train.runs.events import read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus

__all__ = ["follow"]

POLL_S = 0.5
ASK_SLURM_EVERY_S = 10.0


def follow(run: RunDir, timeout_s: float | None) -> Iterator[RunStatus]:
    """The run's status about twice a second, until it has ended.

    Slurm is asked every ten seconds, and when the run's history has grown: what is new there may
    say that the job has begun, or has ended.

    Raises:
        HpcTrainError: when it has not ended after `timeout_s`.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    ask_at, asked_at_size, answer = 0.0, -1, SlurmAnswer()
    while True:
        now, size = time.monotonic(), _size_of_history(run)
        events = read_events(run.events)
        if now >= ask_at or size != asked_at_size:
            ask_at, asked_at_size, answer = (
                now + ASK_SLURM_EVERY_S,
                size,
                ask_slurm(open_jobs([events])),
            )
        (status,) = observe([run], time.time(), answer=answer, histories=[events])
        yield status
        if status.state.ended:
            return
        if deadline is not None and now > deadline:
            raise HpcTrainError(f"{status.name} is still {status.state.value}")
        time.sleep(POLL_S)


def _size_of_history(run: RunDir) -> int:
    try:
        return run.events.stat().st_size
    except FileNotFoundError:
        return 0
