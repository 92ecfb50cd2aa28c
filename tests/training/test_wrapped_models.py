"""An attribute that is asked of DistributedDataParallel, and is the model's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from hpc_train.training.failures.failure_words import fix_of


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.width = 3

    @property
    def size(self) -> int:
        return 4

    def forward(self, x: Any) -> Any:
        return self.fc(x)

    def part(self) -> Any:
        return self.module


class Holder:
    def __init__(self, net: Any) -> None:
        self.net = net


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def told(call: Any, *given: Any) -> str:
    with pytest.raises(AttributeError) as caught:
        call(*given)
    return fix_of(caught.value)


HELD = "as DistributedDataParallel holds the Net in .module"
AVERAGES = "as that alone averages the gradients"


def test_what_the_model_has_is_asked_of_its_module() -> None:
    net: Any = DistributedDataParallel(Net())
    assert told(lambda model: model.fc.parameters(), net) == f"write model.module.fc, {HELD}"
    assert told(lambda model: model.width, net) == f"write model.module.width, {HELD}"
    assert told(lambda model: model.size, net) == f"write model.module.size, {HELD}"
    assert told(lambda it: it.net.fc, Holder(net)) == f"write it.net.module.fc, {HELD}"


def test_a_call_of_a_part_is_told_that_forward_alone_averages() -> None:
    net: Any = DistributedDataParallel(Net())
    said = told(lambda model, x: model.fc(x), net, torch.ones(1, 2))
    step = "in a training step call it in forward(), and write model(...)"
    assert said == f"write model.module.fc, {HELD}; {step}, {AVERAGES}"


def test_a_compiled_model_is_told_as_well() -> None:
    inside: Any = DistributedDataParallel(torch.compile(Net()))  # type: ignore[arg-type]
    assert told(lambda model: model.fc.weight, inside) == f"write model.module.fc, {HELD}"
    outside: Any = torch.compile(DistributedDataParallel(Net()))
    assert told(lambda model: model.fc.weight, outside) == f"write model.module.fc, {HELD}"
    assert isinstance(inside.module.fc, nn.Linear)
    assert isinstance(outside.module.fc, nn.Linear)


def test_data_parallel_is_told_and_what_no_one_has() -> None:
    net: Any = DataParallel(Net())
    assert told(lambda model: model.fc.weight, net) == (
        "write model.module.fc, as DataParallel holds the Net in .module"
    )
    assert told(lambda model: model.widht, net) == (
        "DataParallel holds the Net in .module, which has no widht either: did you mean 'width'?"
    )


def test_module_of_what_nothing_wraps() -> None:
    net: Any = Net()
    both = 'getattr(model, "module", model)'
    assert told(lambda model: model.module.fc, net) == (
        f"nothing wraps model here: write {both}.fc, which is right in both cases"
    )
    assert told(lambda model: model.module, net) == (
        f"nothing wraps model here: write {both}, which is right in both cases"
    )
    assert "nothing wraps" not in told(net.part)
    other: Any = Holder(1)
    assert "wraps" not in told(lambda it: it.module, other)


def test_devices_that_are_given_for_a_model_on_a_cpu() -> None:
    with pytest.raises(ValueError, match="device_ids") as caught:
        DistributedDataParallel(Net(), device_ids=[0])
    said = "leave device_ids and output_device out: it takes the device that the model is on"
    assert fix_of(caught.value) == said
