from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.accelerators import CUDAAccelerator
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.utilities import rank_zero_only

from hpc_train.errors import ConfigError
from hpc_train.plan.world import World
from hpc_train.training.devices import Device
from hpc_train.training.environment import HpcEnvironment
from hpc_train.training.loggers import ProgressLines
from hpc_train.training.trainer import (
    batch_norm_note,
    has_batch_norm,
    make_trainer,
    trainer_arguments,
)
from tests.training.launched import make_plan, make_world

CPU = Device(kind="cpu")
GPU = Device(kind="cuda", index=2)


@pytest.fixture(autouse=True)
def _process_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Trainer leaves marks in its process, which here is that of all tests."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as Lightning, and taken back
    yield
    torch.use_deterministic_algorithms(False)
    rank_zero_only.rank = 0


class Plain(pl.LightningModule):
    def __init__(self, layer: type[torch.nn.Module] = torch.nn.ReLU) -> None:
        super().__init__()
        self.layer = layer(4) if layer is torch.nn.BatchNorm1d else layer()


def world(nodes: int = 3, per_node: int = 4, rank: int = 6) -> World:
    return make_world(nodes, per_node, rank, address="rack1n01", port=29511)


def arguments(
    tmp_path: Path,
    device: Device = CPU,
    place: World | None = None,
    model: pl.LightningModule | None = None,
    on_terminal: bool = False,
    reproducible: bool = True,
    **trainer: Any,
) -> dict[str, Any]:
    place = place or world()
    plan = make_plan(
        tmp_path,
        nodes=place.nodes,
        ranks_per_node=place.ranks_per_node,
        trainer=trainer,
        accumulate=2,
        global_batch_size=96,
        reproducible=reproducible,
    )
    return trainer_arguments(
        plan,
        world=place,
        device=device,
        model=model or Plain(),
        loggers=[],
        root=str(tmp_path),
        on_terminal=on_terminal,
    )


def test_the_shape_reaches_lightning_and_its_own_guesses_do_not(tmp_path: Path) -> None:
    trainer = make_trainer(arguments(tmp_path))
    environment = trainer.strategy.cluster_environment  # type: ignore[attr-defined]
    assert isinstance(environment, HpcEnvironment)
    assert (trainer.num_nodes, trainer.num_devices, trainer.world_size) == (3, 4, 12)
    assert (trainer.global_rank, trainer.local_rank, trainer.node_rank) == (6, 2, 1)
    assert (environment.main_address, environment.main_port) == ("rack1n01", 29511)
    assert isinstance(trainer.strategy, DDPStrategy)
    assert trainer.accumulate_grad_batches == 2
    assert not trainer.is_global_zero


def test_one_rank_needs_no_strategy(tmp_path: Path) -> None:
    trainer = make_trainer(arguments(tmp_path, place=world(1, 1, 0)))
    assert not isinstance(trainer.strategy, DDPStrategy)


def test_arguments_of_the_strategy_pass_through(tmp_path: Path) -> None:
    made = arguments(tmp_path, strategy={"name": "ddp", "find_unused_parameters": True})
    assert made["strategy"]._ddp_kwargs == {"find_unused_parameters": True}
    assert arguments(tmp_path, strategy="ddp_find_unused_parameters_true")["strategy"] == (
        "ddp_find_unused_parameters_true"
    )
    spec = {"class_path": "pytorch_lightning.strategies.DDPStrategy", "init_args": {}}
    assert isinstance(arguments(tmp_path, strategy=spec)["strategy"], DDPStrategy)


@pytest.mark.parametrize(
    ("strategy", "message", "hint"),
    [
        ("ddpp", "Lightning knows no 'ddpp'", "one of auto, ddp"),
        ("ddp_spawn", "starts processes by itself", "write strategy: ddp"),
        ("deepspeed_stage_2", "needs the package deepspeed", "pip install deepspeed"),
        ("fsdp", "needs GPUs, and this run trains on the CPU", "write strategy: ddp"),
        (
            {"name": "fsdp"},
            "needs GPUs, and this run trains on the CPU",
            "write strategy: ddp",
        ),
    ],
)
def test_a_strategy_that_cannot_be_is_refused_with_what_to_write(
    tmp_path: Path, strategy: Any, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        arguments(tmp_path, strategy=strategy)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_what_lightning_refuses_is_said_in_one_line(tmp_path: Path) -> None:
    made = arguments(tmp_path, overfit_batches=1.5)
    with pytest.raises(ConfigError, match=r"trainer: Lightning 2\.\S+ refuses these arguments"):
        make_trainer(made)


def test_callbacks_come_from_their_specs_and_lines_replace_the_bar(tmp_path: Path) -> None:
    spec = {
        "class_path": "pytorch_lightning.callbacks.EarlyStopping",
        "init_args": {"monitor": "val_loss", "patience": 2},
    }
    made = arguments(tmp_path, callbacks=[spec])
    stopping, lines = made["callbacks"]
    assert stopping.patience == 2
    assert isinstance(lines, ProgressLines)
    assert made["enable_progress_bar"] is False
    assert arguments(tmp_path, on_terminal=True)["callbacks"] == []


class OwnBar(pl.callbacks.ProgressBar):
    """Writes what it likes, where it likes."""


def test_a_bar_among_the_callbacks_is_shown_where_it_can_be_seen(tmp_path: Path) -> None:
    own = {"class_path": f"{__name__}.OwnBar"}
    for name in ("RichProgressBar", "TQDMProgressBar"):
        bar = {"class_path": f"pytorch_lightning.callbacks.{name}"}
        (lines,) = arguments(tmp_path, callbacks=[bar])["callbacks"]
        assert isinstance(lines, ProgressLines)
        make_trainer(arguments(tmp_path, callbacks=[bar]))
        seen = arguments(tmp_path, on_terminal=True, callbacks=[bar])
        assert [type(it).__name__ for it in seen["callbacks"]] == [name]
        assert make_trainer(seen).progress_bar_callback is seen["callbacks"][0]
        asked = arguments(tmp_path, callbacks=[bar], enable_progress_bar=True)
        assert make_trainer(asked).progress_bar_callback is asked["callbacks"][0]
    kept = make_trainer(arguments(tmp_path, callbacks=[own]))
    assert isinstance(kept.progress_bar_callback, OwnBar)


def test_a_callback_that_is_none_of_lightnings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"collections\.OrderedDict is no Callback"):
        arguments(tmp_path, callbacks=[{"class_path": "collections.OrderedDict"}])


def test_batch_norm_is_synchronised_on_gpus_and_the_cpu_says_that_it_is_not(
    tmp_path: Path,
) -> None:
    normed, plain = Plain(torch.nn.BatchNorm1d), Plain()
    assert has_batch_norm(normed)
    assert arguments(tmp_path, GPU, model=normed)["sync_batchnorm"] is True
    assert arguments(tmp_path, GPU, model=plain)["sync_batchnorm"] is False
    assert "sync_batchnorm" not in arguments(tmp_path, GPU, world(1, 1, 0), model=normed)
    assert "BatchNorm uses each rank's own samples" in batch_norm_note(normed, world(), CPU)
    assert batch_norm_note(plain, world(), CPU) == ""
    assert batch_norm_note(normed, world(), GPU) == ""


def test_a_rank_that_sees_only_its_own_gpu_counts_as_one_of_its_node(tmp_path: Path) -> None:
    own = Device(kind="cuda", index=0, own_only=True)
    accelerator = arguments(tmp_path, own)["accelerator"]
    assert isinstance(accelerator, CUDAAccelerator)
    devices = accelerator.get_parallel_devices(accelerator.parse_devices(4))
    assert devices == [torch.device("cuda", 0)] * 4
    assert arguments(tmp_path, GPU)["accelerator"] == "cuda"


def test_the_config_has_the_last_word_on_single_switches(tmp_path: Path) -> None:
    assert arguments(tmp_path)["deterministic"] == "warn"
    assert arguments(tmp_path, deterministic=True)["deterministic"] is True
    assert arguments(tmp_path, reproducible=False)["benchmark"] is True
