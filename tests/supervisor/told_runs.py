"""Runs that end as they are told to, and who is sent the news of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.config.schema import NotifyConfig
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.states import Outcome
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import ExitRecord, write_exit
from hpc_train.supervisor import run
from hpc_train.supervisor.attempt import Attempt, AttemptResult
from hpc_train.supervisor.notices import notify_of_start
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.progress import attempt_steps, record_end
from hpc_train.supervisor.stopcause import StopCause
from tests.plan.configs import config

from .channels import Channel, channel

# Apprise takes 0.2 s here, and longer where many tests run; a bound is this and some seconds.
TIMEOUT_S = 20.0


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[Channel]:
    with channel() as made:
        monkeypatch.setenv("MY_CHANNELS", made.url)
        yield made


def made_run(folder: Path, *, urls_from: str = "MY_CHANNELS", **notify: object) -> RunDir:
    directory = RunDir(folder / "digits" / "20261122-100000-ab12")
    directory.path.mkdir(parents=True)
    told = NotifyConfig(**{"urls_from": urls_from, "timeout_s": TIMEOUT_S, **notify})  # type: ignore[arg-type]
    plan = make_plan(config(notify=told), workdir=folder, python="python3")
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    return directory


def ends_as(monkeypatch: pytest.MonkeyPatch, *ends: AttemptOutcome, error: str = "") -> None:
    """The attempts of the next supervisor."""
    left = iter(ends)

    def made_up(attempt: Attempt) -> AttemptResult:
        if error:
            record = ExitRecord(
                rank=1, node="n2", code=1, time=time.time(), error=error,
                traceback=f"Traceback (most recent call last):\n{error}\n",
            )  # fmt: skip
            write_exit(attempt.folder, record)
        notify_of_start(attempt)
        ending = next(left)
        steps = attempt_steps(attempt.run, attempt.number, assumed_first=0)
        record_end(attempt.run, attempt.number, ending, steps)
        return AttemptResult(ending, StopCause(None))

    monkeypatch.setattr(run, "_check_and_train", made_up)


DONE = AttemptOutcome(outcome=Outcome.COMPLETED, reason="all ranks finished")

ERROR = "ModuleNotFoundError: No module named 'albumentations'"

FAILED = AttemptOutcome(
    outcome=Outcome.USER_ERROR, reason=f"rank 1 on n2 failed: {ERROR}", rank=1, node="n2"
)


def settle() -> None:
    """Wait for the notices under way, as the supervisor's process does at its end."""
    for thread in under_way():
        thread.join()


def under_way() -> list[threading.Thread]:
    """Threads that a process waits for at its end."""
    return [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread()
    ]


def eventually(listening: Channel, count: int) -> list[str]:
    """The titles, once so many have come: the start is told beside the run."""
    deadline = time.monotonic() + 60
    while len(listening.came) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    return sorted(listening.titles)
