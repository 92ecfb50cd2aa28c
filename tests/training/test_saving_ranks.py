"""Saves that several ranks make together: ranks are threads, their group and their files real."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from hpc_train.runs.checkpoints import MODEL_FILE
from hpc_train.training.resume.manifest import read_manifest
from hpc_train.training.resume.rank_checkpoint import load_tensors
from hpc_train.training.resume.saving import (
    SHARDS,
)
from tests.training.controlled import Held
from tests.training.savers import saver, state, steps, tmp_path
from tests.training.threads import as_ranks

__all__ = ["tmp_path"]


def files(folder: Path, step: int) -> list[str]:
    path = folder / f"step-{step:09d}"
    return sorted(item.path for item in read_manifest(path).files)


def test_a_save_waits_for_an_earlier_one_that_is_still_being_written(tmp_path: Path) -> None:
    written = threading.Event()
    saving = saver(tmp_path)
    saving.start(state(5, own={"rank": Held(written)}))
    threading.Timer(0.2, written.set).start()
    assert saving.save(state(6))
    assert steps(tmp_path) == [5, 6]


def test_each_rank_writes_its_own_file_and_rank_0_the_model(tmp_path: Path) -> None:
    def rank(number: int, group: dist.ProcessGroup) -> tuple[bool, int | None, int]:
        saving = saver(tmp_path, number, group)
        return saving.save(state(7, number)), saving.last_step, saving.written

    assert as_ranks(2, rank) == [(True, 7, 0), (True, 7, 0)]
    assert files(tmp_path, 7) == [MODEL_FILE, "rank-0.pt", "rank-1.pt"]
    path = tmp_path / "step-000000007"
    assert load_tensors(path / "rank-1.pt") == {"rank": 1}
    manifest = read_manifest(path)
    assert (manifest.step, manifest.epoch, manifest.samples) == (7, 2, 70)
    assert (manifest.world_size, manifest.accumulate, manifest.attempt) == (2, 4, 3)
    assert manifest.config_hash == "abc"
    lightning = {"pytorch-lightning", "lightning"}  # a model may be of either
    assert set(manifest.versions) == {"python", "torch", *lightning, "hpc-train"}
    assert manifest.time > 1.7e9


def test_a_save_in_the_background_is_committed_once_all_have_written(tmp_path: Path) -> None:
    def rank(number: int, group: dist.ProcessGroup) -> list[Any]:
        saving = saver(tmp_path, number, group, keep_last=9)
        told: list[Any] = [saving.busy]
        for step in (1, 2):
            saving.start(state(step, number))
            saving.wait_idle()
            told += [saving.busy, saving.written, saving.last_step]
            saving.settle(step - 1)
            told.append(steps(tmp_path) if number == 0 else None)
            saving.settle(step)
            saving.settle(step)  # told twice
            saving.wait_idle()
            told.append(saving.busy)
        saving.finish()
        told.append(saving.last_step)
        return told

    first, second = as_ranks(2, rank)
    assert first == [False, True, 1, 1, [], False, True, 2, 2, [1], False, 2]
    assert [item for item in second if item is not None] == [
        item for item in first if not isinstance(item, list)
    ]
    assert steps(tmp_path) == [1, 2]


def test_the_same_step_is_written_once(tmp_path: Path) -> None:
    saving = saver(tmp_path)
    assert saving.save(state(5))
    before = (tmp_path / "step-000000005" / MODEL_FILE).stat().st_mtime_ns
    assert saving.save(state(5))
    saving.start(state(5))
    assert not saving.busy
    assert (tmp_path / "step-000000005" / MODEL_FILE).stat().st_mtime_ns == before


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_save_is_written_behind_the_trainings_back_or_in_front_of_it(
    asynchronous: bool, tmp_path: Path
) -> None:
    saving = saver(tmp_path, asynchronous=asynchronous)
    saving.start(state(1))
    assert saving.busy is asynchronous
    assert (steps(tmp_path) == [1]) is not asynchronous
    saving.finish()
    assert steps(tmp_path) == [1]


def test_a_save_right_behind_another_waits_for_it(tmp_path: Path) -> None:
    saving = saver(tmp_path)
    saving.start(state(1))
    saving.start(state(2))
    saving.finish()
    assert steps(tmp_path) == [1, 2]


def test_a_copy_while_the_buffers_are_needed_is_refused(tmp_path: Path) -> None:
    saving = saver(tmp_path)
    weight = torch.zeros(4)
    copied = saving.copy(state(1, weight=weight))
    weight.fill_(9.0)
    assert copied.model["state_dict"]["weight"].tolist() == [0.0] * 4
    assert (copied.step, copied.own) == (1, {"rank": 0})
    saving.start(state(1))
    with pytest.raises(RuntimeError, match="in use"):
        saving.copy(state(2))
    saving.finish()
    saving.copy(state(2))


def shards(rank: int) -> Any:
    def write(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"__{rank}_0.distcp").write_bytes(bytes([rank]) * 100)
        if rank == 0:
            (folder / ".metadata").write_bytes(b"all")

    return write


def test_shards_are_each_ranks_own_and_are_saved_at_once(tmp_path: Path) -> None:
    def rank(number: int, group: dist.ProcessGroup) -> bool:
        saving = saver(tmp_path, number, group)
        saving.start(state(4, number, model=None, shards=shards(number)))
        return saving.busy

    assert as_ranks(2, rank) == [False, False]
    assert files(tmp_path, 4) == [
        f"{SHARDS}/.metadata",
        f"{SHARDS}/__0_0.distcp",
        f"{SHARDS}/__1_0.distcp",
        "rank-0.pt",
        "rank-1.pt",
    ]
    assert steps(tmp_path) == [4]
