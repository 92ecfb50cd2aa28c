"""A run's folder that is moved or removed under its supervisor."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import Outcome
from hpc_train.runs.events import Event, EventKind, append_event, end_of, read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import ExitRecord, Heartbeat, write_exit, write_heartbeat
from hpc_train.supervisor import run_folder
from hpc_train.supervisor.run import _ended_attempts
from hpc_train.supervisor.run_folder import FolderGoneError, RunFolder, watched_folder
from hpc_train.training.resume.checkpoint import open_partial

BEAT = Heartbeat(rank=0, node="n", pid=1, time=1.0, moved=1.0, phase="train", step=3)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setattr(run_folder, "LOOK_AGAIN_S", 0.0)
    run = RunDir(tmp_path / "name" / "id")
    run.attempt(0).path.mkdir(parents=True)
    run.plan.write_text("{}")
    append_event(run.events, Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    return run


@pytest.fixture
def folder(run: RunDir) -> Iterator[RunFolder]:
    with watched_folder(run) as held:
        yield held


def test_a_folder_in_its_place_is_no_matter(folder: RunFolder) -> None:
    folder.check()


def test_a_file_system_that_numbers_folders_anew_has_moved_none(folder: RunFolder) -> None:
    RunFolder(folder.run, folder.descriptor, (0, 0)).check()


def test_a_moved_run_is_told_with_its_new_place_and_its_attempt_has_an_end(
    run: RunDir, tmp_path: Path
) -> None:
    new = RunDir(tmp_path / "other" / "id")

    def moved() -> None:
        with watched_folder(run):
            run.path.parent.rename(new.path.parent)
            append_event(run.events, Event(2.0, EventKind.NOTE))

    with pytest.raises(FolderGoneError) as caught:
        moved()
    assert f"moved to {new.path} while it ran" in caught.value.message
    assert caught.value.hint == f"hpc-train resume {new.path}"
    (attempt,) = attempts_in(read_events(new.events))
    said = f"its folder was moved while it ran, from {run.path} to {new.path}; nothing was saved"
    assert (attempt.outcome, attempt.reason) == (Outcome.USER_ERROR, said)
    end = end_of(read_events(new.events))
    assert end is not None
    assert end.get("state") == "failed"
    assert not run.path.exists()


def test_a_folder_of_that_name_that_is_another_one_is_not_the_run(
    run: RunDir, folder: RunFolder, tmp_path: Path
) -> None:
    run.path.rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", run.path)
    with pytest.raises(FolderGoneError, match="aside"):
        folder.check()


def test_a_removed_run_is_told_and_nothing_of_it_is_made_anew(
    run: RunDir, folder: RunFolder
) -> None:
    shutil.rmtree(run.path)
    with pytest.raises(FolderGoneError, match="was removed while it ran"):
        folder.check()
    for write in (
        lambda: write_heartbeat(run.attempt(0), BEAT),
        lambda: write_exit(run.attempt(0), ExitRecord(rank=0, node="n", time=1.0, code=0)),
        lambda: open_partial(run.checkpoints, 3, 0),
    ):
        with pytest.raises(FileNotFoundError):
            write()
    assert not run.path.exists()


def test_an_error_of_the_file_system_in_a_run_that_is_there_stays_what_it_is(run: RunDir) -> None:
    with pytest.raises(IsADirectoryError), watched_folder(run):
        run.attempt(0).path.read_text()


def test_a_history_without_an_attempt_is_told_as_such(run: RunDir) -> None:
    with pytest.raises(HpcTrainError, match="tells of no attempt that has ended"):
        _ended_attempts(run)
