"""What a Session notes at the first two steps of an attempt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hpc_train.training.sessions.session_notes import SessionNotes

SAID = "the 2 ranks exchanged nothing up to their second optimizer step"


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def noted(model: torch.nn.Module, *, ranks: int = 2, own: bool = False) -> list[str]:
    """Of three steps; `own` is an exchange of the session's as it counts a step."""
    told: list[str] = []
    notes = SessionNotes(told.append, ranks=ranks)
    notes.drew()
    for _ in range(3):
        model(torch.ones(4, 2)).sum().backward()
        notes.before_step()
        if own:
            dist.all_reduce(torch.ones(1))
        notes.after_step()
    return told


@pytest.mark.parametrize("own", [False, True])
def test_ranks_that_share_no_gradients_are_noted_once(own: bool) -> None:
    (said,) = noted(torch.nn.Linear(2, 1), own=own)
    assert said.startswith(SAID)
    assert said.endswith("wrap the model in torch.nn.parallel.DistributedDataParallel")


def test_one_rank_has_nobody_to_share_with() -> None:
    assert noted(torch.nn.Linear(2, 1), ranks=1) == []


def test_a_wrapped_model_shares_them() -> None:
    assert noted(DistributedDataParallel(torch.nn.Linear(2, 1)), own=True) == []


@pytest.mark.parametrize(("ranks", "each"), [(1, ": an attempt"), (3, ": each of the 3 ranks")])
def test_samples_of_ones_own_are_noted_at_the_first_step(ranks: int, each: str) -> None:
    told: list[str] = []
    notes = SessionNotes(told.append, ranks=ranks)
    notes.before_step()
    assert len(told) == 1
    assert told[0].startswith("the first step took no samples of session.batches")
    assert each in told[0]
