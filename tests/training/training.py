"""A small training that uses everything whose state is easily lost: dropout, BatchNorm, schedulers,
accumulation, random augmentation, running means, torchmetrics, EMA, epoch-end hooks."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import DDPStrategy, ModelParallelStrategy
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from torchmetrics import MeanMetric

from hpc_train.config.schema import (
    CheckpointConfig,
    PreflightConfig,
    RequeueConfig,
    WatchdogConfig,
)
from hpc_train.plan.plan import Batch, ObjectSpec, Plan, Shape, ShellPlan, SlurmPlan, Training
from tests.ledger import LedgerCallback

DEFAULTS: dict[str, Any] = {
    "module": "tests.training.job",
    "reaction_s": 0.0,  # 0: the ranks agree at every step, so that a test can name the step
    "global_batch": 12,
    "accumulate": 1,
    "samples": 75,
    "epochs": 2,
    "workers": 0,
    "persistent": False,
    "shuffle": True,
    "step_s": 0.0,
    "val_batch_s": 0.0,
    "val_samples": 10,
    "late_s": 0.0,  # which rank 0 takes longer behind each step
    "checkpoint": {},
    "data": "map",
    "trainer": {},
    "ema": False,
    "exports": "",  # "killed": while it exports
    "nan_at": None,
    "estimate": False,
    "plateau": True,
    "still": "",  # "logged", "seen": the loss is that of the samples alone; which mean is told
    "sharded": False,
    "early_stopping": False,
    "models": [],  # arguments of ModelCheckpoints
    "callbacks": {},  # of Lightning's, by name, with their arguments
    "val_nan": False,
    "thaw": False,
    "ddp": {},
    "config_hash": "abc",
    "reopened_step": None,
}


def make_plan(spec: dict[str, Any], world_size: int) -> Plan:
    micro = spec["global_batch"] // (world_size * spec["accumulate"])
    fields = dict.fromkeys(Plan.__dataclass_fields__)
    fields.update(
        name="test",
        workdir=".",
        runs_dir="runs",
        config_hash=spec["config_hash"],
        shape=Shape(1, world_size, 0),
        batch=Batch(spec["global_batch"], micro, spec["accumulate"]),
        training=Training(ObjectSpec("", {}), ObjectSpec("", {}), {}, [], 7, True),
        slurm=SlurmPlan([], None, 120),
        shell=ShellPlan([], {}, [], "python"),
        checkpoint=CheckpointConfig(**{"every_n_minutes": None, **spec["checkpoint"]}),
        requeue=RequeueConfig(),
        watchdog=WatchdogConfig(heartbeat_s=0.2),
        preflight=PreflightConfig(),
        verb="fit",
        weights="",
        reopened_step=spec["reopened_step"],
        schema_version=1,
    )
    return Plan(**fields)


class Augmented(Dataset):
    """Sample i is features of i plus noise from all three RNGs, and i itself."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        noise = random.random() + np.random.rand() + torch.rand(4)
        return torch.full((4,), float(index % 10)) + noise, index


class Stream(IterableDataset):
    """Sharded by rank and worker, of uneven lengths, with a state; noise from the RNG."""

    def __init__(self, n: int, rank: int, world_size: int, *, sized: bool) -> None:
        self.n, self.rank, self.world_size = n, rank, world_size
        self.at = 0
        if sized:
            self.__class__ = SizedStream

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        of_rank = range(self.rank, self.n, self.world_size)
        border = len(of_rank) * 2 // 3 if workers > 1 else len(of_rank)
        mine = of_rank[border:] if worker else of_rank[:border]
        while self.at < len(mine):
            self.at += 1
            yield torch.rand(4) + mine[self.at - 1] % 10, mine[self.at - 1]
        self.at = 0

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class SizedStream(Stream):
    def __len__(self) -> int:
        return self.n // self.world_size


class Stateless(IterableDataset):
    """The same samples each time, and no state."""

    def __init__(self, n: int, rank: int, world_size: int) -> None:
        self.items = range(rank, n, world_size)

    def __iter__(self):
        for item in self.items:
            yield torch.full((4,), item / 10), item


class Data(pl.LightningDataModule):
    def __init__(self, spec: dict[str, Any], rank: int, world_size: int) -> None:
        super().__init__()
        self.spec, self.rank, self.world_size = spec, rank, world_size

    def train_dataloader(self) -> Any:
        spec = self.spec
        n, workers = spec["samples"], spec["workers"]
        options = {
            "batch_size": 3,
            "num_workers": workers,
            "persistent_workers": spec["persistent"] and workers > 0,
        }
        kind = spec["data"]
        if kind == "map":
            return DataLoader(Augmented(n), shuffle=spec["shuffle"], **options)
        if kind == "tensors":
            sets = TensorDataset(torch.randn(n, 4), torch.arange(n))
            return DataLoader(sets, shuffle=spec["shuffle"], **options)
        if kind == "stateless":
            return DataLoader(Stateless(n, self.rank, self.world_size), **options)
        sized = kind == "sized_stream"
        return DataLoader(Stream(n, self.rank, self.world_size, sized=sized), **options)

    def val_dataloader(self) -> Any:
        return DataLoader(Augmented(self.spec["val_samples"]), batch_size=2)


class Model(pl.LightningModule):
    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__()
        self.spec = spec
        self.net = torch.nn.Sequential(
            torch.nn.Linear(4, 16),
            torch.nn.Identity() if spec["sharded"] else torch.nn.BatchNorm1d(16),
            torch.nn.Dropout(0.3),
            torch.nn.ReLU(),
            torch.nn.Linear(16, 1),
        )
        self.net[0].requires_grad_(not spec["thaw"])
        self.seen = MeanMetric()
        self.val_ids: list[int] = []

    def configure_model(self) -> None:
        if self.spec["sharded"] and not hasattr(self.net, "unshard"):
            fully_shard(self.net, mesh=self.device_mesh["data_parallel"])

    def on_train_epoch_start(self) -> None:
        if self.current_epoch == 1:  # and not again, where an attempt begins in its middle
            self.net[0].requires_grad_(True)

    def training_step(self, batch, index):
        x, ids = batch
        if self.spec["step_s"]:
            time.sleep(self.spec["step_s"])
        loss = (self.net(x).squeeze(1) - ids / 10).square().mean()
        if self.spec["nan_at"] is not None and self.global_step >= self.spec["nan_at"]:
            loss = loss * float("nan")
        if self.spec["still"]:
            loss = loss * 0 + ids.float().mean()
        self.seen(loss.detach(), len(ids) if self.spec["still"] else 1.0)
        self.log("loss", loss, on_step=True, on_epoch=True, sync_dist=bool(self.spec["still"]))
        self.log("seen", self.seen, on_step=False, on_epoch=True)
        return loss

    def on_train_batch_end(self, *_: Any) -> None:
        if self.global_rank == 0:
            time.sleep(self.spec["late_s"])

    def validation_step(self, batch, index):
        x, ids = batch
        if index == 0:
            print(f"validates at step {self.global_step}", flush=True)
        if self.spec["val_batch_s"]:
            time.sleep(self.spec["val_batch_s"])
        loss = (self.net(x).squeeze(1) - ids / 10).square().mean() + torch.rand(())
        self.log("val_loss", loss * float("nan" if self.spec["val_nan"] else 1), sync_dist=True)

    def on_train_epoch_end(self) -> None:
        metrics = self.trainer.callback_metrics
        value = metrics["seen" if self.spec["still"] == "seen" else "loss_epoch"].item()
        with Path(self.spec["run_dir"], f"epochs-{self.global_rank}.txt").open("a") as stream:
            stream.write(f"{self.trainer.current_epoch} {value!r}\n")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        steps: Any = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
        if self.spec["estimate"]:  # asks for the data before the loops are restored
            total = int(self.trainer.estimated_stepping_batches)
            steps = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
        stepped: Any = {"scheduler": steps, "interval": "step"}
        if not self.spec["plateau"]:
            return [optimizer], [stepped]
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
        return [optimizer], [
            stepped,
            {"scheduler": plateau, "monitor": "val_loss", "interval": "epoch"},
        ]


class Exports(pl.Callback):
    """What a user does with the weights once they are trained."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.began = 0

    def on_train_start(self, *_: Any) -> None:
        self.began = 1

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert self.began
        if self.spec["exports"] == "killed" and self.spec["attempt"] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if trainer.is_global_zero:
            metrics = {name: it.item() for name, it in trainer.callback_metrics.items()}
            kept = {"weights": pl_module.state_dict(), "metrics": metrics}
            kept |= {"epoch": trainer.current_epoch, "step": trainer.global_step}
            torch.save(kept, Path(self.spec["run_dir"], "exported.pt"))


def ids_of(batch: Any) -> list[int]:
    return batch[1].tolist()


def build(spec: dict[str, Any], rank: int, world_size: int):
    run_dir = Path(spec["run_dir"])
    callbacks: list[Any] = [
        LedgerCallback(run_dir / "ledger", rank=rank, attempt=spec["attempt"], ids=ids_of)
    ]
    if spec["ema"]:
        from pytorch_lightning.callbacks import EMAWeightAveraging  # since 2.6

        callbacks.append(EMAWeightAveraging(decay=0.9))
    if spec["early_stopping"]:
        callbacks += [
            EarlyStopping("val_loss", patience=1, min_delta=5.0),
            ModelCheckpoint(run_dir / "best", monitor="val_loss", save_top_k=1),
        ]
    callbacks += [ModelCheckpoint(**options) for options in spec["models"]]
    callbacks += [Exports(spec)] if spec["exports"] else []
    callbacks += [getattr(pl.callbacks, name)(**it) for name, it in spec["callbacks"].items()]
    arguments = {
        "accelerator": "cpu",
        "devices": world_size,
        "strategy": DDPStrategy(**spec["ddp"]) if world_size > 1 else "auto",
        "plugins": [LightningEnvironment()],
        "logger": CSVLogger(run_dir / "csv", name="", version=f"{spec['attempt']}-{rank}"),
        "max_epochs": spec["epochs"],
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": run_dir,
        "log_every_n_steps": 1,
        "callbacks": callbacks,
        "accumulate_grad_batches": spec["accumulate"],
        "use_distributed_sampler": False,
        "enable_checkpointing": spec["early_stopping"] or bool(spec["models"]),
        **spec["trainer"],
    }
    if spec["sharded"]:
        arguments["strategy"] = ModelParallelStrategy(world_size, 1)
    trainer = pl.Trainer(**arguments)
    return trainer, Model(spec), Data(spec, rank, world_size)
