"""The run's lock and history, also where the file system knows no locks."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

import pytest

from hpc_train.errors import HpcTrainError
from hpc_train.runs.events import Event, EventKind, append_event, read_events
from hpc_train.runs.lock import held_lock, is_held

NO_LOCKS = [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP]


@pytest.fixture(params=NO_LOCKS)
def without_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Lustre that is mounted without `flock`: no file system of this machine is."""

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(request.param, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_a_second_supervisor_is_refused_with_the_first_ones_words(tmp_path: Path) -> None:
    with held_lock(tmp_path / "lock", "job 7"):
        assert is_held(tmp_path / "lock")
        with pytest.raises(HpcTrainError, match="already being trained by job 7"):
            held_lock(tmp_path / "lock", "job 8").__enter__()
    assert not is_held(tmp_path / "lock")


@pytest.mark.usefixtures("without_locks")
def test_without_locks_a_run_has_its_history_and_trains(tmp_path: Path) -> None:
    for attempt in range(3):
        event = Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": attempt})
        append_event(tmp_path / "events.jsonl", event)
    assert [one.get("attempt") for one in read_events(tmp_path / "events.jsonl")] == [0, 1, 2]
    with held_lock(tmp_path / "lock", "job 7"):
        assert (tmp_path / "lock").read_text() == "job 7\n"
    assert not is_held(tmp_path / "lock")


def test_another_error_of_the_file_system_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="broken"):
        append_event(tmp_path / "events", Event(1.0, EventKind.NOTE, {}))


def test_a_lock_that_may_only_be_read_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "supervisor.lock"
    with held_lock(lock, "me"):
        monkeypatch.setattr("os.access", lambda _path, mode: mode != os.W_OK)  # another user's
        assert is_held(lock)
    assert not is_held(lock)
    assert lock.read_text() == "me\n"
