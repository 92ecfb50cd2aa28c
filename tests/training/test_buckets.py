"""What DDP's gradient buckets do to a resume; `bucket_job` has the models.

The first tests hold the names that `hpc_train.training.private.torch_ddp` uses: they take no
processes, and tell after an upgrade of torch which one is gone or means something else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hpc_train.training.resume.buckets import GradientBuckets
from tests.training.bucket_job import Frozen, Shuffled, mlp
from tests.training.ranks import Run


@pytest.fixture
def alone() -> Iterator[None]:
    """A process group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def step(ddp: Any) -> None:
    ddp(torch.ones(2, 6)).sum().backward()
    ddp.zero_grad()


def order(buckets: GradientBuckets) -> list[str]:
    return list(buckets.capture()["model/"]["parameters"])


def begun(ddp: nn.Module, saved: Any = None) -> GradientBuckets:
    buckets = GradientBuckets(saved)
    buckets.begin(model=ddp)
    return buckets


@pytest.mark.usefixtures("alone")
def test_ddp_tells_the_order_in_which_gradients_became_ready() -> None:
    # Reducer._rebuild_buckets, Logger.set_runtime_stats_and_log, DDP._get_ddp_logging_data,
    # DDP._set_ddp_runtime_logging_sample_rate, DDP._ddp_init_helper
    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2)))
    buckets = begun(ddp)
    declared = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert order(buckets) == declared
    step(ddp)
    assert order(buckets) == declared[::-1]
    assert buckets.capture()["model/"]["rebuilt"] is True


@pytest.mark.usefixtures("alone")
def test_the_order_is_told_late_in_a_training_too() -> None:
    ddp = DistributedDataParallel(mlp())
    buckets = begun(ddp)
    for _ in range(15):
        step(ddp)
    assert order(buckets)[0] == "5.bias"


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("static", [False, True])
def test_a_new_ddp_takes_an_order_and_keeps_it(static: bool) -> None:
    # Reducer._push_all_rebuilt_params, DDP._build_params_for_reducer, DDP._remove_autograd_hooks,
    # DDP._build_debug_param_to_name_mapping, Reducer._set_static_graph
    first = DistributedDataParallel(Shuffled(), static_graph=static)
    buckets = begun(first)
    step(first)
    step(first)
    saved = buckets.capture()
    second = DistributedDataParallel(Shuffled(turns=True), static_graph=static)
    second.module.step = 1  # another order, were it asked again
    buckets = begun(second, saved)
    for _ in range(3):
        step(second)
        assert buckets.capture() == saved


@pytest.mark.usefixtures("alone")
def test_what_thaws_is_reduced_from_then_on() -> None:
    ddp = DistributedDataParallel(Frozen(early=True))
    buckets = begun(ddp)
    step(ddp)
    assert not any(name.startswith("backbone") for name in order(buckets))
    ddp.module.backbone.requires_grad_(True)
    step(ddp)
    assert order(buckets)[-2:] in (
        ["backbone.bias", "backbone.weight"],
        ["backbone.weight", "backbone.bias"],
    )
    step(ddp)
    assert not ddp._forward_pre_hooks  # nothing is left to wait for


@pytest.mark.usefixtures("alone")
def test_nothing_is_asked_in_a_step_of_an_ordinary_model() -> None:
    ddp = DistributedDataParallel(mlp())
    begun(ddp)
    assert not ddp._forward_pre_hooks


@pytest.mark.usefixtures("alone")
def test_an_order_of_other_parameters_is_left_aside_and_that_is_said(
    capfd: pytest.CaptureFixture[str],
) -> None:
    first = DistributedDataParallel(mlp())
    buckets = begun(first)
    step(first)
    second = DistributedDataParallel(Shuffled())
    again = begun(second, buckets.capture())
    assert "other names" in capfd.readouterr().err
    step(second)
    assert order(again)[0].startswith("last")


@pytest.mark.usefixtures("alone")
def test_parameters_that_ddp_was_told_to_ignore_stay_out() -> None:
    module = Frozen(early=True)
    ignored = ["backbone.weight", "backbone.bias"]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ignored)
    ddp = DistributedDataParallel(module)
    buckets = begun(ddp)
    module.backbone.requires_grad_(True)
    step(ddp)
    assert not set(ignored) & set(order(buckets))


@pytest.mark.usefixtures("alone")
def test_ddp_that_nobody_trains_and_models_without_ddp_do_no_harm() -> None:
    ddp = DistributedDataParallel(mlp())
    ddp.requires_grad_(False)
    assert begun(ddp).capture()["model/"]["rebuilt"] is False
    assert begun(mlp()).capture() == {}
    assert GradientBuckets(None).capture() == {}


@pytest.mark.parametrize("world_size", [2, 3, 4, 6])
def test_interruptions_change_no_bit_of_any_model(world_size: int, tmp_path: Path) -> None:
    run = Run(tmp_path, module="tests.training.bucket_job")
    ranks = run.start(world_size)
    assert ranks.wait() == [0] * world_size, ranks.logs()
    differ = []
    for rank in range(world_size):
        found = json.loads((tmp_path / f"found-{rank}.json").read_text())
        for name, runs in found.items():
            for stops, hashes in runs["interrupted"].items():
                equal = [a == b for a, b in zip(hashes, runs["undisturbed"], strict=True)]
                if not all(equal):
                    differ.append(f"rank {rank}, {name}, stops {stops}: step {equal.index(False)}")
    assert differ == []
