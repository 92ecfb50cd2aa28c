"""Code that asks for a GPU where the run is on CPUs, told with what to write."""

from __future__ import annotations

from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.failures import asked_of_gpu
from hpc_train.training.failures.failure_words import fix_of

CPUS = "this run is on CPUs (accelerator: cpu): "
MOVES = "Lightning moves the model and each batch"


class Told(pl.LightningModule):
    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        x, y = batch
        x, y = x.cuda(), y.cuda()
        return x, y

    def forward(self, x: Any) -> Any:
        return x.to("cuda:0")

    def makes(self, x: Any) -> Any:
        return x + torch.zeros(3, device="cuda")

    def four(self, x: Any) -> Any:
        return x.cuda(), self.a.cuda(), self.b.cuda(), self.c.cuda()

    a = b = c = torch.zeros(1)


class Early(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.zeros(1).cuda()


def current() -> Any:
    return torch.cuda.current_device()


@pytest.fixture(autouse=True)
def _on_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("it has a GPU")
    monkeypatch.setattr(asked_of_gpu, "_on_cpus", "")


def told(call: Any, *given: Any) -> str:
    with pytest.raises((AssertionError, AttributeError, RuntimeError)) as caught:
        call(*given)
    return fix_of(caught.value)


def test_in_a_step_it_is_told_as_self_device() -> None:
    asked_of_gpu.tell_cpus("cpu")
    x, net = torch.zeros(3), Told()
    both = "write x.to(self.device), y.to(self.device), or leave .cuda() out: "
    assert told(net.training_step, (x, x)) == f"{CPUS}{both}{MOVES}"
    assert "write x.to(self.device), or leave .to('cuda:0') out" in told(net, x)
    assert "write device=self.device, or leave device='cuda' out" in told(net.makes, x)
    assert "self.b.to(self.device), ..., or leave" in told(net.four, x)


def test_before_the_model_is_where_it_trains_it_is_to_be_left_out() -> None:
    asked_of_gpu.tell_cpus("auto")
    auto = "this run is on CPUs (accelerator: auto, and torch sees no GPU): "
    assert told(Early) == f"{auto}leave .cuda() out: {MOVES}"
    assert told(lambda: torch.zeros(1).cuda()) == f"{auto}leave .cuda() out: {MOVES}"
    assert told(current) == f"{auto}leave out what asks for a GPU: {MOVES}"
    assert told(torch.cuda.set_device, 0) == f"{auto}leave out what asks for a GPU: {MOVES}"


def test_a_run_that_is_not_known_to_be_on_cpus_is_told_nothing() -> None:
    assert not told(lambda: torch.zeros(1).cuda())
    asked_of_gpu.tell_cpus("cpu")
    assert not fix_of(RuntimeError("CUDA error: an illegal memory access"))
