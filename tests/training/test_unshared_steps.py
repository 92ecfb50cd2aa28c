"""Ranks that have exchanged nothing by their second step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import read_notes
from hpc_train.training.scripts import unshared_steps
from hpc_train.training.scripts.unshared_steps import note_unshared, tell_fabric

SAID = "the 2 ranks exchanged nothing up to their second optimizer step"
WRAP = "unless that is meant, wrap the model in torch.nn.parallel.DistributedDataParallel"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(unshared_steps, "_of_fabric", False)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def notes(folder: Path, *, ranks: int = 2, barriers: int = 0) -> list[str]:
    attempt = AttemptDir(folder)
    attempt.notes.unlink(missing_ok=True)
    for _ in range(2):  # told once
        note_unshared(attempt, ranks=ranks, known=barriers)
    return read_notes(attempt)


def test_a_barrier_exchanges_nothing(tmp_path: Path) -> None:
    (said,) = notes(tmp_path)
    assert said.startswith(SAID)
    assert said.endswith(WRAP)
    dist.barrier()
    assert len(notes(tmp_path, barriers=1)) == 1
    assert notes(tmp_path, ranks=1, barriers=1) == []


def test_a_fabric_is_told_its_own_call(tmp_path: Path) -> None:
    tell_fabric()
    (said,) = notes(tmp_path)
    assert said.endswith("write model, optimizer = fabric.setup(model, optimizer)")


@pytest.mark.parametrize(
    ("count", "fix"),
    [
        (2, "write model, optimizer = accelerator.prepare(model, optimizer)"),
        (1, "write cpu=True into the first of its PartialState() and Accelerator()"),
    ],
)
def test_an_accelerator_is_told_its_own_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, fix: str
) -> None:
    state = SimpleNamespace(_shared_state={"num_processes": count})
    module = SimpleNamespace(AcceleratorState=state)
    monkeypatch.setitem(sys.modules, "accelerate.state", module)
    (said,) = notes(tmp_path)
    assert said.endswith(fix)
    state._shared_state.clear()  # imported, and none was made
    (said,) = notes(tmp_path)
    assert said.endswith(WRAP)


def test_what_averages_is_not_told(tmp_path: Path) -> None:
    dist.all_reduce(torch.ones(1))
    assert notes(tmp_path) == []


def test_nor_what_is_wrapped(tmp_path: Path) -> None:
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    model(torch.ones(4, 2)).sum().backward()
    assert notes(tmp_path) == []
