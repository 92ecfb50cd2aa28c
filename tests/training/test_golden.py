"""Checkpoints that earlier code wrote are gone on from: users have them on their disks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from hpc_train.plan.plan import Batch
from hpc_train.training.resume.manifest import SCHEMA_VERSION, find_problem, read_manifest
from hpc_train.training.resume.rank_checkpoint import load_tensors
from hpc_train.training.resume.sample_order import DataPosition, GlobalBatchSampler
from tests.ledger import Entry
from tests.training.make_golden import SPECS, STEP, golden_checkpoint
from tests.training.ranks import Run

VERSIONS = range(1, SCHEMA_VERSION + 1)
STEPS_AN_EPOCH, EPOCHS = 6, 2


def expected_samples(rank: int, batch: Batch) -> list[list[int]]:
    """What a rank has to use in each step behind the checkpoint."""
    steps = []
    for epoch in range(EPOCHS):
        start = DataPosition(epoch, 0, 7)
        sampler = GlobalBatchSampler(75, batch, rank=rank, world_size=2, start=start, shuffle=True)
        micro = list(sampler)
        for step in range(STEPS_AN_EPOCH):
            used = micro[step * batch.accumulate : (step + 1) * batch.accumulate]
            steps.append([sample for part in used for sample in part])
    return steps[STEP:]


def samples_of(ledger: list[Entry], rank: int) -> list[list[int]]:
    return [entry.samples for entry in ledger if entry.rank == rank]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", SPECS)
def test_a_checkpoint_of_every_version_is_gone_on_from(
    kind: str, version: int, tmp_path: Path
) -> None:
    golden = golden_checkpoint(version, kind)
    assert find_problem(golden) is None
    assert read_manifest(golden).schema_version == version
    run = Run(tmp_path, **SPECS[kind])
    shutil.copytree(golden, run.dir.checkpoints / golden.name)
    assert run.run(2) == [0, 0]
    assert f"first {STEP}" in run.log(0, 1)
    assert [entry.step for entry in run.ledger if entry.rank == 0] == list(range(STEP + 1, 13))
    accumulate = SPECS[kind].get("accumulate", 1)
    batch = Batch(12, 6 // accumulate, accumulate)
    for rank in (0, 1):
        assert samples_of(run.ledger, rank) == expected_samples(rank, batch)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_weights_of_every_version_are_where_users_look_for_them(version: int) -> None:
    for kind in SPECS:
        state = load_tensors(golden_checkpoint(version, kind) / "model.ckpt")["state_dict"]
        assert all(isinstance(value, torch.Tensor) for value in state.values())
        assert len(state) >= 4
