"""What a script's own Trainer asks for, what it gets, and what is refused at once."""

from __future__ import annotations

from typing import Any

import lightning_fabric
import pytest
from lightning_fabric.plugins.environments import LightningEnvironment

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Shape
from hpc_train.training.devices import Device
from hpc_train.training.environment import HpcEnvironment
from hpc_train.training.private.lightning import pl
from hpc_train.training.scripts.script_fabric import settled_fabric
from hpc_train.training.scripts.script_shape import asked_accelerator
from hpc_train.training.scripts.script_trainer import settled_arguments
from tests.training.launched import make_world

CPU = Device(kind="cpu")
GPU = Device(kind="cuda", index=0)


def settle(
    nodes: int = 3, per_node: int = 4, device: Device = CPU, **given: Any
) -> tuple[dict[str, Any], str]:
    world = make_world(nodes, per_node)
    return settled_arguments(given, world=world, device=device, on_terminal=False)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"devices": 1, "num_nodes": 1},
        {"devices": 4, "num_nodes": 3},
        {"devices": "auto"},
        {"devices": -1},
        {"devices": "-1"},
        {"devices": "2"},
        {"devices": "0,1"},
        {"devices": [0, 2]},
        {"strategy": "auto"},
        {"strategy": "ddp"},
        {"strategy": None, "accelerator": "auto"},
    ],
)
def test_any_place_that_fits_becomes_that_of_the_allocation(given: dict[str, Any]) -> None:
    settled, told = settle(**given, max_epochs=7, default_root_dir="here", deterministic=True)
    assert (settled["devices"], settled["num_nodes"]) == (4, 3)
    assert settled["strategy"] == "ddp"
    assert settled["use_distributed_sampler"] is False
    assert [type(item) for item in settled["plugins"]] == [HpcEnvironment]
    kept = {name: settled[name] for name in ("max_epochs", "default_root_dir", "deterministic")}
    assert kept == {"max_epochs": 7, "default_root_dir": "here", "deterministic": True}
    assert "it gets 3 nodes x 4 on cpu, strategy ddp" in told
    assert "\n" not in told
    for name in given:
        assert given[name] is None or f"{name}={given[name]}" in told


@pytest.mark.parametrize("strategy", ["fsdp", "ddp_find_unused_parameters_true"])
def test_a_strategy_that_fits_stays(strategy: str) -> None:
    assert settle(device=GPU, strategy=strategy)[0]["strategy"] == strategy


def test_a_strategy_object_stays_and_hears_of_the_world_by_our_environment() -> None:
    own = LightningEnvironment()
    asked = pl.strategies.DDPStrategy(cluster_environment=own, bucket_cap_mb=3)
    settled, told = settle(strategy=asked, plugins=own)
    assert settled["strategy"] is asked
    assert asked.cluster_environment is None
    assert [type(item) for item in settled["plugins"]] == [HpcEnvironment]
    assert "strategy=DDPStrategy, a cluster environment of its own" in told


def test_one_rank_needs_no_strategy_of_many() -> None:
    settled, told = settle(1, 1)
    assert settled["strategy"] == "auto"
    assert "left its place open; it gets 1 node x 1 on cpu" in told
    asked = pl.strategies.SingleDeviceStrategy()
    assert settle(1, 1, strategy=asked)[0]["strategy"] is asked


@pytest.mark.parametrize(
    ("given", "said", "fix"),
    [
        ({"devices": 8}, "devices=8)", "--gpus 8"),
        ({"devices": [0, 1, 2, 3, 4]}, "devices=5)", "--gpus 5"),
        ({"devices": "8"}, "devices=8)", "--gpus 8"),
        ({"num_nodes": 4}, "num_nodes=4)", "--nodes 4"),
        ({"strategy": "ddp_spawn"}, "ddp_spawn starts processes", "ddp"),
        ({"strategy": "ddp_notebook"}, "starts processes", "ddp"),
        ({"strategy": "dpp"}, "knows no 'dpp'", "ddp"),
        ({"strategy": "fsdp"}, "fsdp needs GPUs", "ddp"),
        ({"strategy": pl.strategies.DDPStrategy(start_method="spawn")}, "starts proc", "leave out"),
        ({"strategy": pl.strategies.SingleDeviceStrategy()}, "12 ranks", "--nodes 1"),
    ],
)
def test_what_this_allocation_cannot_give_is_refused(
    given: dict[str, Any], said: str, fix: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settle(**given)
    assert said in caught.value.message
    assert fix in caught.value.hint


@pytest.mark.parametrize(
    ("given", "gpus", "visible", "wanted"),
    [
        ({}, 4, "0,1,2,3", "gpu"),  # never silently on the CPU where GPUs were given
        ({}, 4, None, "auto"),
        ({}, 0, None, "cpu"),
        ({"accelerator": "gpu"}, 0, None, "cpu"),
        ({"accelerator": "gpu"}, 4, None, "gpu"),
        ({"accelerator": "cpu"}, 4, "0", "cpu"),
        ({"accelerator": pl.accelerators.CPUAccelerator()}, 4, "0", "cpu"),
        ({"accelerator": "tpu"}, 0, None, "tpu"),  # which `choose_device` refuses
    ],
)
def test_the_accelerator_is_the_scripts_own_unless_the_run_is_one_on_cpus(
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    gpus: int,
    visible: str | None,
    wanted: str,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    shape = Shape(nodes=1, ranks_per_node=4, gpus_per_node=gpus)
    assert asked_accelerator(given, shape) == wanted


def test_a_bar_among_the_callbacks_stays_and_else_none_is_made() -> None:
    assert settle()[0]["enable_progress_bar"] is False
    assert settle(enable_progress_bar=None)[0]["enable_progress_bar"] is False
    assert settle(enable_progress_bar=True)[0]["enable_progress_bar"] is True
    bars = settle(callbacks=[pl.callbacks.TQDMProgressBar()])[0]
    assert bars.get("enable_progress_bar") is None, "Lightning refuses both"


def fabric(nodes: int = 3, per_node: int = 4, **given: Any) -> dict[str, Any]:
    world = make_world(nodes, per_node)
    return settled_fabric(given, lightning_fabric.fabric, world=world, device=CPU)[0]


def test_a_fabric_becomes_what_the_allocation_is() -> None:
    own = LightningEnvironment()
    asked = lightning_fabric.strategies.DDPStrategy(cluster_environment=own)
    for strategy, given in ((None, "ddp"), ("auto", "ddp"), ("fsdp", "fsdp"), (asked, asked)):
        settled = fabric(strategy=strategy, devices=1, plugins=own, precision="bf16-mixed")
        made = (settled["devices"], settled["num_nodes"], settled["accelerator"])
        assert made == (4, 3, "cpu")
        assert settled["strategy"] == given
        assert settled["precision"] == "bf16-mixed"
        (environment,) = settled["plugins"]
        assert isinstance(environment, lightning_fabric.plugins.environments.ClusterEnvironment)
        assert environment.world_size() == 12
    assert asked.cluster_environment is None
    assert fabric(1, 1)["strategy"] == "auto"


@pytest.mark.parametrize(
    ("given", "said", "fix"),
    [
        ({"devices": 8}, "Fabric(devices=8)", "--gpus 8"),
        ({"num_nodes": 4}, "Fabric(num_nodes=4)", "--nodes 4"),
        ({"strategy": "ddp_spawn"}, "strategy='ddp_spawn'", "'ddp'"),
        ({"strategy": "dp"}, "strategy='dp'", "'ddp'"),
        (
            {"strategy": lightning_fabric.strategies.DDPStrategy(start_method="fork")},
            "starts processes",
            "leave out start_method",
        ),
        ({"strategy": lightning_fabric.strategies.SingleDeviceStrategy()}, "12 ranks", "--nodes 1"),
    ],
)
def test_what_this_allocation_cannot_give_a_fabric_is_refused(
    given: dict[str, Any], said: str, fix: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        fabric(**given)
    assert said in caught.value.message
    assert fix in caught.value.hint
