"""DistributedDataParallel that waits for gradients: whose they are, and what to write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hpc_train.plan.plan import Batch
from hpc_train.training.rank_failure import failure_of

BATCH = Batch(4, 1, 1)
KEY = "submit again with trainer.strategy=ddp_find_unused_parameters_true"
OF_LIGHTNING = (
    "It looks like your LightningModule has parameters that were not used in producing the loss"
    " returned by training_step. If this is intentional, you must enable the detection of unused"
    " parameters in DDP, either by setting the string value"
    " `strategy='ddp_find_unused_parameters_true'`"
)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.net = nn.Linear(2, 2)
        self.head = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(self.frozen(x))


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    store = f"file://{tmp_path}/store"
    dist.init_process_group("gloo", store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def steps(ddp: DistributedDataParallel, *, clears: bool) -> None:
    for _ in range(2):
        if clears:
            ddp.zero_grad()
        ddp(torch.ones(1, 2)).sum().backward()


@pytest.mark.parametrize("clears", [True, False])
def test_parameters_without_a_gradient_are_named_by_torchs_own_numbers(group, clears):
    ddp = DistributedDataParallel(Net())
    with pytest.raises(RuntimeError, match="did not receive grad") as caught:
        steps(ddp, clears=clears)
    failure = failure_of(caught.value, BATCH)
    assert "no gradient came to head.weight, head.bias: " in failure.fix
    assert failure.fix.endswith(KEY)
    assert failure.error.endswith(failure.fix)
    assert failure_of(caught.value).fix.endswith('"ddp_find_unused_parameters_true" of a Trainer)')


def test_of_lightnings_words_without_numbers_those_that_have_no_gradient_are_told(group):
    ddp = DistributedDataParallel(Net())
    ddp(torch.ones(1, 2)).sum().backward()

    def fail(ddp: DistributedDataParallel) -> None:
        raise RuntimeError(OF_LIGHTNING)

    with pytest.raises(RuntimeError) as caught:
        fail(ddp)
    said = failure_of(caught.value, BATCH).error
    assert "returned by training_step; no gradient came to head.weight, head.bias: use" in said
    assert "If this is intentional" not in said


def test_where_no_parameter_can_be_named_the_message_stands_alone(group):
    ddp = DistributedDataParallel(Net())

    def fail(ddp: DistributedDataParallel) -> None:
        raise RuntimeError(OF_LIGHTNING)

    for argument in (ddp, None):  # all gradients were cleared, or the model is not in sight
        with pytest.raises(RuntimeError) as caught:
            fail(argument)
        assert failure_of(caught.value, BATCH).fix == ""


def test_of_many_parameters_some_are_named(group):
    net = Net()
    net.more = nn.ModuleList(nn.Linear(1, 1) for _ in range(9))
    with pytest.raises(RuntimeError) as caught:
        steps(DistributedDataParallel(net), clears=True)
    assert "more.1.bias and 14 more: use" in failure_of(caught.value, BATCH).fix


def test_parameters_that_were_frozen_since_are_told_with_what_freezes_them(group):
    """As a callback does: of those that are trained now none lacks a gradient."""
    net = Net()
    ddp = DistributedDataParallel(net)
    net.head.requires_grad_(False)
    ddp(torch.ones(1, 2)).sum().backward()

    def fail(ddp: DistributedDataParallel) -> None:
        raise RuntimeError(OF_LIGHTNING)

    with pytest.raises(RuntimeError) as caught:
        fail(ddp)
    assert failure_of(caught.value, BATCH).fix == (
        "no gradient came to head.weight, head.bias, whose requires_grad was turned off since"
        f" DistributedDataParallel was made (by a callback?): {KEY}; or freeze them in the model's"
        " __init__"
    )
