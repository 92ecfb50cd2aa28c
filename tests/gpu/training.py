"""A small training that draws from CUDA's generator, and writes down every step."""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, Dataset

from hpc_train.plan import env_names
from tests.ledger import hash_tensors

STEPS = 24  # of an epoch, with the global batch of 16


class Images(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.randn(3, 16, 16) + index % 10, torch.tensor(index % 10)


class Data(pl.LightningDataModule):
    def __init__(self, batch_size: int, num_workers: int = 0, pin_memory: bool = False) -> None:
        super().__init__()
        self.batch_size, self.workers, self.pinned = batch_size, num_workers, pin_memory

    def train_dataloader(self) -> Any:
        return DataLoader(
            Images(16 * STEPS),
            batch_size=self.batch_size,
            shuffle=True,
            num_workers=min(2, self.workers),
            pin_memory=self.pinned,
        )


class Model(pl.LightningModule):
    """Convolutions (cuDNN), dropout (CUDA's generator), BatchNorm.

    Args:
        width: Of the hidden layer; large ones make large checkpoints.
        step_s: Sleep in each step, so that it can be interrupted.
        fill_at: The step that allocates more memory than any GPU has.
        compiled: Through torch.compile.
        sharded: Parameters in shards (fully_shard).
        hashed: Whether each step's parameters are hashed; not where time is measured.
    """

    def __init__(
        self,
        width: int = 64,
        step_s: float = 0.0,
        fill_at: int | None = None,
        compiled: bool = False,
        sharded: bool = False,
        hashed: bool = True,
    ) -> None:
        super().__init__()
        self.hashed = hashed
        self.step_s, self.fill_at, self.sharded = step_s, fill_at, sharded
        layers = [
            torch.nn.Conv2d(3, 8, 3, padding=1),
            torch.nn.Identity() if sharded else torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(8 * 16 * 16, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, 10),
        ]
        self.net = torch.nn.Sequential(*layers)
        self.forward_of = torch.compile(self.net) if compiled else self.net

    def configure_model(self) -> None:
        if self.sharded and not hasattr(self.net, "unshard"):
            fully_shard(self.net, mesh=self.device_mesh["data_parallel"])

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, labels = batch
        if index == 0:
            print(f"device {x.device.type}  dtype {self._output_type(x)}")
        if self.fill_at is not None and self.global_step >= self.fill_at:
            torch.zeros(2**44, device=self.device)  # 64 TiB
        time.sleep(self.step_s)
        loss: Tensor = torch.nn.functional.cross_entropy(self.forward_of(x), labels)
        return loss

    def _output_type(self, x: Tensor) -> torch.dtype:
        with torch.no_grad():
            found: torch.dtype = torch.nn.functional.linear(x, torch.ones_like(x[0, 0])).dtype
        return found

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        if not hasattr(self, "told"):
            self.told = True
            print(f"before the transfer: pinned {batch[0].is_pinned()}")
        return batch

    def on_train_batch_end(self, *given: Any) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()  # else the clock tells when kernels were queued
        file = Path(os.environ[env_names.RUN_DIR], f"steps-{self.global_rank}.jsonl")
        line = {
            "step": self.global_step,
            "time": time.perf_counter(),
            "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "parameters": hash_tensors(self.net.parameters()) if self.hashed else "",
            "device": str(self.device),
            "uuid": _uuid(self.device),
        }
        with file.open("a") as stream:
            stream.write(json.dumps(line) + "\n")

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.net.parameters(), lr=1e-3)


def _uuid(device: torch.device) -> str:
    if device.type != "cuda":
        return ""
    return str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
