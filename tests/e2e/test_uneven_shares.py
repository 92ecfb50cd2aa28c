"""Ranks whose shares of a stream are not equally long: the last step of the fit never ends."""

from __future__ import annotations

import json
import time

import pytest

from tests.e2e.conftest import Shell

NETS = """
import torch
from pytorch_lightning import LightningDataModule, LightningModule
from torch.utils.data import DataLoader, IterableDataset


class Net(LightningModule):
    def __init__(self, slow_save_s: float = 0.0):
        super().__init__()
        self.slow_save_s = slow_save_s
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, _):
        return self.layer(batch).square().mean()

    def on_save_checkpoint(self, checkpoint):
        import time
        time.sleep(self.slow_save_s)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class Stream(IterableDataset):
    def __init__(self, shares):
        self.shares = shares

    def __iter__(self):
        rank = torch.distributed.get_rank()
        yield from torch.ones(2 * self.shares[rank], 8)


class Data(LightningDataModule):
    def __init__(self, batch_size: int, shares: list[int]):
        super().__init__()
        self.batch_size, self.shares = batch_size, shares

    def train_dataloader(self):
        return DataLoader(Stream(self.shares), self.batch_size)
"""
CONFIG = """
name: uneven
global_batch_size: {batch}
model: {{class_path: nets.Net, init_args: {{slow_save_s: {slow}}}}}
data: {{class_path: nets.Data, init_args: {{shares: {shares}}}}}
trainer: {{max_epochs: 1, accelerator: cpu, limit_val_batches: 0}}
loggers: []
checkpoint: {{every_n_minutes: null}}
requeue: {{enabled: false}}
preflight: {{mode: "off", monitor_interval_s: 0}}
watchdog: {{floor_s: 15}}
"""


def ended(here: Shell, shares: list[int], *, slow: float = 0.0, code: int = 0) -> dict[str, object]:
    """The only attempt of a run with such shares."""
    (here.folder / "nets.py").write_text(NETS)
    text = CONFIG.format(batch=2 * len(shares), shares=shares, slow=slow)
    (here.folder / "cfg.yaml").write_text(text)
    shape = ("--cluster", "local", "--nodes", 1, "--gpus", len(shares))
    here.hpc("submit", *shape, here.folder / "cfg.yaml", "--wait", code=code)
    (attempt,) = json.loads(here.hpc("status", "--json").stdout)["attempts"]
    return dict(attempt)


@pytest.mark.parametrize(
    ("shares", "who"),
    [
        ([5, 7], "rank 0 has had its last batch of epoch 1 at step 5, and rank 1 has more"),
        ([7, 6, 7], "rank 1 has had its last batch of epoch 1 at step 6, and ranks 0, 2 have more"),
    ],
)
def test_a_fit_whose_end_not_all_ranks_reach_is_a_hang_as_in_any_step(
    here: Shell, shares: list[int], who: str
) -> None:
    """It took as long as a save may take: a quarter of an hour."""
    began = time.time()
    attempt = ended(here, shares, code=10)
    assert time.time() - began < 400
    assert attempt["outcome"] == "hang"
    reason = str(attempt["reason"])
    assert "(limit 15 s)" in reason
    assert who in reason
    assert f"trainer.limit_train_batches={min(shares)}" in reason


def test_a_last_save_that_takes_longer_than_a_step_may_is_no_hang(here: Shell) -> None:
    attempt = ended(here, [5, 5], slow=22.0)
    assert (attempt["outcome"], attempt["saved_step"]) == ("completed", 5)
