from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hpc_train.config.schema import CheckpointConfig
from hpc_train.errors import RunFailedError
from hpc_train.runs.checkpoints import MODEL_FILE
from hpc_train.runs.ranks import read_notes
from hpc_train.training.faults import RehearsedFaults, parse_faults
from hpc_train.training.resume.checkpoint import find_newest_valid, list_checkpoints
from hpc_train.training.resume.rank_checkpoint import load_tensors
from hpc_train.training.resume.saving import Saver, Snapshot
from hpc_train.training.resume.staging import StagingBuffers
from tests.training.controlled import rank_config

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


def saver(folder: Path, **config: Any) -> Saver:
    rank = rank_config(folder, checkpoint=CheckpointConfig(**config))
    return Saver(rank, group=None, faults=RehearsedFaults((), rank=0, attempt=0))


def snapshot(step: int, weight: torch.Tensor, **fields: Any) -> Snapshot:
    return Snapshot(
        step=step,
        epoch=0,
        samples=step,
        model={"state_dict": {"weight": weight}, "step": step},
        own={"rng": torch.get_rng_state()},
        **fields,
    )


def weight_in(path: Path) -> torch.Tensor:
    weight: torch.Tensor = load_tensors(path / MODEL_FILE)["state_dict"]["weight"]
    return weight


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """The run's folder of checkpoints."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], check=True)
    yield folder / "checkpoints"
    subprocess.run(["umount", folder], check=True)


def test_a_background_save_has_the_state_of_its_step_and_not_a_later_one(tmp_path: Path) -> None:
    weight = torch.zeros(1000)
    saving = saver(tmp_path)
    saving.start(snapshot(3, weight))
    weight.fill_(9)  # the training goes on
    saving.finish()
    path, _ = find_newest_valid(tmp_path)
    assert path is not None
    assert path.name == "step-000000003"
    assert torch.equal(weight_in(path), torch.zeros(1000))


def test_nothing_is_committed_before_every_rank_has_written(tmp_path: Path) -> None:
    saving = saver(tmp_path)
    saving.start(snapshot(3, torch.zeros(10)))
    saving.wait_idle()
    assert saving.written == 1
    saving.settle(0)  # another rank is not ready
    saving.wait_idle()
    assert find_newest_valid(tmp_path)[0] is None
    saving.settle(1)
    saving.wait_idle()
    assert find_newest_valid(tmp_path)[0] is not None


def test_tied_weights_stay_one_and_buffers_are_used_again() -> None:
    weight = torch.arange(10.0)
    host = StagingBuffers()
    first = host.copy({"a": weight, "b": weight, "part": weight[2:4]})
    assert first["a"].data_ptr() == first["b"].data_ptr()
    assert torch.equal(first["part"], weight[2:4])
    weight.add_(1)
    second = host.copy({"a": weight, "b": weight, "part": weight[2:4]})
    assert second["a"].data_ptr() == first["a"].data_ptr()
    assert torch.equal(second["a"], weight)


def test_memory_that_was_prepared_is_the_memory_that_is_used() -> None:
    state = {"model": [torch.ones(5)], "own": {"x": torch.ones(2, 3).t()}}
    host = StagingBuffers()
    host.prepare(StagingBuffers.layout(state))
    prepared = {path: buffer.data_ptr() for path, buffer in host._buffers.items()}
    copied = host.copy(state)
    assert copied["model"][0].data_ptr() in prepared.values()
    assert copied["own"]["x"].stride() == state["own"]["x"].stride()  # type: ignore[index]
    assert prepared == {path: buffer.data_ptr() for path, buffer in host._buffers.items()}


@as_root
def test_a_full_disk_leaves_the_last_good_one_and_says_so(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saving = saver(small_disk, keep_last=3)
    assert saving.save(snapshot(1, torch.ones(200_000)))
    assert not saving.save(snapshot(2, torch.ones(700_000)))
    error = capsys.readouterr().err
    assert "step 2 could not be saved" in error
    assert "the training goes on" in error
    path, _ = find_newest_valid(small_disk)
    assert path is not None
    assert path.name == "step-000000001"


@as_root
def test_a_full_disk_makes_room_by_deleting_the_oldest(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saving = saver(small_disk, keep_last=9)
    for step in range(1, 6):
        assert saving.save(snapshot(step, torch.full((200_000,), float(step))))
    assert "the disk is full: deleted" in capsys.readouterr().err
    path, _ = find_newest_valid(small_disk)
    assert path is not None
    assert weight_in(path)[0] == 5


@as_root
def test_a_full_disk_in_the_background_is_told_at_once(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saving = saver(small_disk)
    saving.save(snapshot(1, torch.ones(100_000)))
    saving.start(snapshot(2, torch.ones(900_000)))
    saving.wait_idle()
    assert "step 2 could not be saved" in capsys.readouterr().err
    saving.finish()
    assert "could not be saved" not in capsys.readouterr().err, "it was told"
    assert [found.step for found in list_checkpoints(small_disk, verify=True)] == [1]
    assert saving.save(snapshot(2, torch.ones(100_000)))  # the same step can be tried again


@as_root
def test_the_history_keeps_that_saves_failed_though_a_later_one_came_about(
    small_disk: Path,
) -> None:
    saving = saver(small_disk)
    notes = saving.rank.run.attempt(saving.rank.attempt)
    notes.path.mkdir(parents=True, exist_ok=True)
    saving.save(snapshot(1, torch.ones(100_000)))
    assert read_notes(notes) == []
    for step in (2, 3):
        saving.save(snapshot(step, torch.ones(900_000)))
    saving.save(snapshot(4, torch.ones(100_000)))
    told = "saves: 2 failed since step 2: No space left on device; that of step 4 came about"
    assert read_notes(notes) == [told]
    saving.save(snapshot(5, torch.ones(900_000)))
    saving.save(snapshot(6, torch.ones(100_000)))
    assert read_notes(notes) == [told], "a disk that is full now and then fills no history"


@as_root
def test_saves_that_fail_are_counted_until_one_comes_about(
    small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saving = saver(small_disk)
    for step in (10, 15, 20):
        saving.start(snapshot(step, torch.ones(900_000)))
    saving.finish()
    assert saving.failed is not None
    assert saving.failed.text == "3 failed since step 10: No space left on device"
    assert not saving.save(snapshot(25, torch.ones(900_000)))
    said = capsys.readouterr().err
    assert [said.count(f"of step {step} could") for step in (10, 15, 20, 25)] == [1] * 4
    assert "and there is none yet" in said
    assert saving.save(snapshot(30, torch.ones(10)))
    assert saving.failed is None


@as_root
def test_a_read_only_folder_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saving = saver(tmp_path)
    saving.save(snapshot(1, torch.ones(10)))
    subprocess.run(["mount", "--bind", "-o", "ro", tmp_path, tmp_path], check=True)
    try:
        assert not saving.save(snapshot(2, torch.ones(10)))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert "Read-only" in capsys.readouterr().err
    assert saving.save(snapshot(3, torch.ones(10)))


def test_weights_that_are_not_numbers_are_not_saved(tmp_path: Path) -> None:
    saving = saver(tmp_path)
    saving.save(snapshot(1, torch.ones(10), parameters=frozenset({"weight"})))
    bad = torch.tensor([1.0, float("nan")])
    with pytest.raises(RunFailedError, match="weight is NaN after step 2"):
        saving.save(snapshot(2, bad, parameters=frozenset({"weight"})))
    saving = saver(tmp_path)
    saving.start(snapshot(2, bad, parameters=frozenset({"weight"})))
    with pytest.raises(RunFailedError):
        saving.finish()
    assert [found.step for found in list_checkpoints(tmp_path, verify=True)] == [1]


@pytest.mark.parametrize(
    ("rows", "earlier", "look"),
    [
        (
            "0,0.5,inf,\n1,nan,1,\n2,nan,1,",
            ", and loss was nan at step 1 (metrics.csv)",
            " up to step 1",
        ),
        ("0,0.5,inf,\n1,-inf,1,", ", and loss was -inf at step 1 (metrics.csv)", " up to step 1"),
        ("0,0.5,inf,\n1,0.4,1,", "", ""),
        ("torn", "", ""),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("saves", [True, False])
def test_the_end_by_weights_that_are_nan_says_since_when_and_what_is_there_from_before(
    tmp_path: Path, saves: bool, rows: str, earlier: str, look: str
) -> None:
    saving = saver(tmp_path)
    if saves:
        saving.save(snapshot(1, torch.ones(10), parameters=frozenset({"weight"})))
    if rows:
        metrics = saving.rank.run.metrics_csv
        metrics.parent.mkdir()
        metrics.write_text(f"step,loss,best,val\n{rows}\n")
    bad = torch.tensor([1.0, float("nan")])
    with pytest.raises(RunFailedError) as caught:
        saving.save(snapshot(2, bad, parameters=frozenset({"weight"})))
    assert caught.value.message == (
        f"weight is NaN after step 2: the training has diverged{earlier}"
    )
    kept = "the checkpoint of step 1" if saves else "no checkpoint"
    each = " (trainer.log_every_n_steps=1 tells which step)" if look else ""
    assert caught.value.hint == (
        "lower the learning rate, or submit again with trainer.gradient_clip_val=1.0 or so, and"
        f" look at the data{look}{each}; {kept} is from before"
    )


def test_a_mask_with_nan_that_is_no_parameter_is_saved(tmp_path: Path) -> None:
    bad = torch.tensor([float("nan")])
    assert saver(tmp_path).save(snapshot(1, bad, parameters=frozenset({"other"})))


def test_old_checkpoints_go_and_every_hundredth_stays(tmp_path: Path) -> None:
    saving = saver(tmp_path, keep_last=2, keep_every_n_steps=100, asynchronous=False)
    for step in range(50, 451, 50):
        saving.start(snapshot(step, torch.ones(10)))
    steps = [found.step for found in list_checkpoints(tmp_path, verify=True)]
    assert steps == [450, 400, 300, 200, 100]


def test_the_training_waits_for_the_copy_and_not_for_the_disk(tmp_path: Path) -> None:
    saving = saver(tmp_path)
    slow = threading.Event()
    original = saving._write

    def write(item: Snapshot) -> Any:
        slow.wait(120)
        return original(item)

    saving._write = write  # type: ignore[method-assign]
    before = time.monotonic()
    saving.start(snapshot(1, torch.ones(10)))
    assert time.monotonic() - before < 60
    assert saving.busy
    slow.set()
    saving.finish()
    assert not saving.busy


def test_faults_are_read_and_meant_for_whom_they_name() -> None:
    (fault,) = parse_faults("kill@step=7:rank=1:attempt=0")
    assert (fault.action, fault.point, fault.number, fault.rank, fault.attempt) == (
        "kill",
        "step",
        7,
        1,
        0,
    )
    others = RehearsedFaults(parse_faults("raise@step=7:rank=1"), rank=0, attempt=0)
    others.at("step", 7)
    mine = RehearsedFaults(parse_faults("raise@step=7:rank=1"), rank=1, attempt=0)
    mine.at("step", 6)
    with pytest.raises(RuntimeError, match="step 7"):
        mine.at("step", 7)
    with pytest.raises(ValueError, match="no fault"):
        parse_faults("explode@step=1")
