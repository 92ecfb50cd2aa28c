"""What a save cannot write, and why: what each rank is told, and what is left."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

from hpc_train.errors import RunFailedError
from hpc_train.training.resume.saving import (
    rank_file,
)
from hpc_train.training.resume.unsavable import UnsavableError
from tests.training.savers import saver, state, steps, tmp_path
from tests.training.threads import as_ranks

__all__ = ["tmp_path"]

NAN = torch.tensor([1.0, float("nan")])


def in_the_way(folder: Path, rank: int, step: int) -> Path:
    """Makes the file of one rank impossible to write."""
    path = folder / f".step-{step:09d}.partial-3" / rank_file(rank)
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("bad", [0, 1])
def test_one_rank_that_cannot_write_costs_this_checkpoint_on_all(
    bad: int, asynchronous: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = in_the_way(tmp_path, bad, 2)

    def rank(number: int, group: dist.ProcessGroup) -> list[int | None]:
        saving = saver(tmp_path, number, group, keep_last=9, asynchronous=asynchronous)
        last = []
        for step in (1, 2):
            saving.start(state(step, number))
            saving.finish()
            last.append(saving.last_step)
        assert not blocked.exists(), "what a failed save left takes no room"
        saving.start(state(2, number))  # the same step once more
        saving.finish()
        return [*last, saving.last_step]

    told = as_ranks(2, rank)
    assert told == [[1, None if asynchronous else 1, 2]] * 2
    assert steps(tmp_path) == [1, 2]
    said = capsys.readouterr().err
    assert "the checkpoint of step 2 could not be saved" in said
    assert "the training goes on, and the newest one before it stays" in said
    assert "step 1 could not" not in said


def test_weights_that_are_no_numbers_end_the_training_on_every_rank(tmp_path: Path) -> None:
    def rank(number: int, group: dist.ProcessGroup) -> list[str]:
        saving = saver(tmp_path, number, group)
        said = []

        def in_the_background() -> None:
            saving.start(state(2, number, NAN))
            saving.finish()

        for save in (lambda: saving.save(state(2, number, NAN)), in_the_background):
            with pytest.raises(RunFailedError, match="weight is NaN after step 2") as caught:
                save()
            said.append(caught.value.hint)
        return said

    assert all("learning rate" in hint for hints in as_ranks(2, rank) for hint in hints)
    assert steps(tmp_path) == []


def test_a_commit_that_fails_is_known_on_all_ranks_and_the_step_is_saved_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rank(number: int, group: dist.ProcessGroup) -> list[Any]:
        saving = saver(tmp_path, number, group)
        manifest = tmp_path / ".step-000000005.partial-3" / "manifest.json"
        if number == 0:
            manifest.mkdir(parents=True)
        dist.all_reduce(torch.zeros(1), group=group)
        told: list[Any] = [saving.save(state(5, number)), saving.last_step]
        if number == 0:
            manifest.rmdir()
        dist.all_reduce(torch.zeros(1), group=group)
        return [*told, saving.save(state(5, number)), saving.last_step]

    assert as_ranks(2, rank) == [[False, None, True, 5]] * 2
    assert steps(tmp_path) == [5]
    assert "step 5 could not be saved" in capsys.readouterr().err


def test_a_commit_that_fails_in_the_background_is_not_taken_for_saved(tmp_path: Path) -> None:
    saving = saver(tmp_path)
    manifest = tmp_path / ".step-000000005.partial-3" / "manifest.json"
    manifest.mkdir(parents=True)
    saving.start(state(5))
    assert saving.last_step == 5
    saving.finish()
    assert saving.last_step is None
    manifest.rmdir()
    assert saving.save(state(5))
    assert (saving.last_step, steps(tmp_path)) == (5, [5])


@pytest.mark.parametrize("parameter", ["weight", "other"])
def test_only_what_is_trained_may_not_be_nan(parameter: str, tmp_path: Path) -> None:
    snapshot = state(1, weight=NAN, parameters=frozenset({parameter}))
    if parameter == "other":
        assert saver(tmp_path).save(snapshot)
    else:
        with pytest.raises(RunFailedError):
            saver(tmp_path).save(snapshot)
    assert saver(tmp_path).save(state(2, model=[1, 2], parameters=frozenset({parameter})))


def test_a_state_that_cannot_be_written_leaves_no_save_and_no_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Unwritable:
        def __reduce__(self) -> Any:
            raise KeyError("cannot be pickled")

        def __deepcopy__(self, memo: dict[int, Any]) -> Unwritable:
            return self

    saving = saver(tmp_path)
    saving.start(state(1, own={"meter": [Unwritable()]}))
    with pytest.raises(UnsavableError, match="KeyError: 'cannot be pickled'") as caught:
        saving.finish()
    assert (saving.written, saving.busy, saving.failed) == (1, False, None)
    cause = caught.value.cause
    assert "Unwritable, at this rank's own part['meter'][0] (KeyError" in cause.why
    assert Path(__file__).name in cause.where
    assert "in __reduce__" in cause.traceback
    assert "could not be saved" not in capsys.readouterr().err
    saving.start(state(2))
    saving.finish()
    assert steps(tmp_path) == [2]


class Shards:
    """What a strategy of torch.distributed.checkpoint does: the errors of all ranks at once."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, folder: Path) -> None:
        raise CheckpointException("write", {1: (self.error, traceback.StackSummary())})


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("bad", [0, 1])
def test_what_cannot_be_written_ends_all_ranks_with_the_same_words(
    bad: int, asynchronous: bool, tmp_path: Path
) -> None:
    def rank(number: int, group: dist.ProcessGroup) -> tuple[str, str]:
        saving = saver(tmp_path, number, group, asynchronous=asynchronous)
        own = {"hook": lambda: 1} if number == bad else {}

        def save() -> None:
            saving.start(state(1, number, own=own))
            saving.finish()

        with pytest.raises(UnsavableError) as caught:
            save()
        return caught.value.message, caught.value.cause.traceback

    first, second = as_ranks(2, rank)
    assert first == second
    assert "it holds a lambda, at this rank's own part['hook'] (AttributeError" in first[0]
    assert "torch/serialization.py" in first[1]
    assert steps(tmp_path) == []


def test_a_sharded_state_that_cannot_be_written_ends_all_ranks_and_a_full_disk_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rank(number: int, group: dist.ProcessGroup) -> int:
        saving = saver(tmp_path, number, group)
        full = Shards(OSError(errno.EIO, "Input/output error"))
        saving.start(state(1, number, model=None, shards=full))
        failed = saving.failed.count if saving.failed else 0
        broken = Shards(TypeError("cannot pickle 'generator' object"))
        hooks = {"state_dict": {}, "stream": (item for item in ())}
        with pytest.raises(UnsavableError, match=r"generator, at checkpoint\['stream'\]"):
            saving.start(state(2, number, model=None, shards=broken, beside_shards=hooks))
        return failed

    assert as_ranks(2, rank) == [1, 0], "rank 0 tells it for all"
    said = capsys.readouterr().err
    assert said.count("could not be saved") == 1
    assert "Input/output error; the training goes on, and there is none yet" in said


def test_a_state_that_no_copy_can_be_made_of_ends_the_training_before_its_first_save(
    tmp_path: Path,
) -> None:
    saving = saver(tmp_path)
    locked = state(1, model={"state_dict": {}, "extra": {"lock": threading.Lock()}})
    for begin in (saving.prepare, saving.start):
        with pytest.raises(UnsavableError, match=r"_thread.lock, at checkpoint\['extra'\]\['lo"):
            begin(locked)
    assert not saving.busy


def test_the_thread_that_saves_leaves_the_cpu_to_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "setpriority", lambda which, _who, nice: asked.append((which, nice)))
    saving = saver(tmp_path)
    for step in (1, 2):
        saving.start(state(step))
        saving.finish()
    assert asked == [(os.PRIO_PROCESS, 10)], "one thread for all saves"
    names = [thread.name for thread in threading.enumerate() if thread.daemon]
    assert "hpc-train save" in names


def test_old_checkpoints_that_cannot_be_deleted_cost_no_new_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saving = saver(tmp_path, keep_last=1)
    assert saving.save(state(1))
    litter = tmp_path / ".deleted-step-000000001"
    litter.mkdir()
    (litter / "file").touch()  # its name is taken by a folder that is not empty
    assert saving.save(state(2))
    assert "old checkpoints cannot be deleted" in capsys.readouterr().err
    assert steps(tmp_path) == [1, 2]


@pytest.mark.parametrize(
    ("fault", "saves"), [("raise@save=2", [1]), ("raise@commit=2", [1]), ("raise@save=9", [1, 2])]
)
def test_faults_of_saves_happen_at_the_save_that_they_name(
    fault: str, saves: list[int], tmp_path: Path
) -> None:
    saving = saver(tmp_path, faults=fault)
    with contextlib.suppress(UnsavableError):
        for step in (1, 2):
            saving.start(state(step))
            saving.finish()
    assert steps(tmp_path) == saves


def test_a_state_that_cannot_be_written_leaves_no_other_job_undone(tmp_path: Path) -> None:
    queued = threading.Event()

    class Unwritable:
        def __deepcopy__(self, memo: dict[int, Any]) -> Unwritable:
            return self

        def __reduce__(self) -> Any:
            queued.wait(60)
            raise KeyError("cannot be pickled")

    saving = saver(tmp_path)
    ended: list[BaseException] = []

    def finish() -> None:
        try:
            saving.finish()
        except UnsavableError as error:
            ended.append(error)

    saving.start(state(1, own=Unwritable()))
    saving.prepare(state(2))
    queued.set()
    finished = threading.Thread(target=finish, daemon=True)
    finished.start()
    finished.join(100)
    assert not finished.is_alive(), "it waits for ever, and with it the training"
    assert "cannot be pickled" in str(ended[0])
    assert saving.save(state(2))


def test_only_a_full_disk_costs_old_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Odd:
        def __reduce__(self) -> Any:
            raise OSError(errno.EIO, "Input/output error")

    saving = saver(tmp_path, keep_last=9)
    for step in (1, 2):
        assert saving.save(state(step))
    assert not saving.save(state(3, own=Odd()))
    assert steps(tmp_path) == [1, 2]
    said = capsys.readouterr().err
    assert "Input/output error; the training goes on" in said
    assert said.count("could not be saved") == 1, "only a full disk is tried once more"
