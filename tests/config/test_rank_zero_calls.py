"""A call that all ranks have to make is noted where the text has rank 0 alone make it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from tests.config.files import MINIMAL, write

NETS = """\
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities import rank_zero_only

class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        return batch.sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
HOOK

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
"""


def notes_of(folder: Path, monkeypatch: pytest.MonkeyPatch, hook: str) -> list[str]:
    monkeypatch.chdir(folder)
    write(folder, NETS.replace("HOOK", hook), "nets.py")
    notes = api.load(write(folder, MINIMAL)).notes
    return [it for it in notes if "all ranks have to call it" in it]


HOOK = "    def on_train_epoch_end(self):\n        if {test}:\n            {call}\n"


@pytest.mark.parametrize(
    ("test", "call", "told"),
    [
        ("self.global_rank == 0", "self.log('a', 1, sync_dist=True)", "sync_dist=True"),
        ("self.trainer.is_global_zero", "self.trainer.save_checkpoint('best.ckpt')", "save_ch"),
        ("0 == torch.distributed.get_rank()", "torch.distributed.barrier()", "barrier(...)"),
        ("self.trainer.is_global_zero", "x = [self.all_gather(self.x)]", "all_gather(...)"),
    ],
)
def test_it_is_noted_with_its_line_and_the_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, call: str, told: str
) -> None:
    (note,) = notes_of(tmp_path, monkeypatch, HOOK.format(test=test, call=call))
    assert note.startswith("nets.py:12: ")
    assert told in note
    assert f"stands under `if {test}`" in note
    method = f"    @rank_zero_only\n    def on_fit_end(self):\n        {call}\n"
    (note,) = notes_of(tmp_path, monkeypatch, method)
    assert "stands under @rank_zero_only" in note


@pytest.mark.parametrize(
    ("test", "call"),
    [
        ("self.global_rank == 0", "self.log('a', 1)"),
        ("self.global_rank == 0", "self.log('a', 1, rank_zero_only=True, sync_dist=False)"),
        ("self.global_rank == 0", "print('done')"),
        ("self.current_epoch == 0", "self.log('a', 1, sync_dist=True)"),
        ("self.global_rank != 0", "pass\n        else:\n            self.save_checkpoint('x')"),
        ("self.local_rank == 0 and self.x", "torch.distributed.barrier()"),
        ("self.trainer.is_global_zero", "def save(): torch.distributed.barrier()"),
    ],
)
def test_what_rank_0_may_do_alone_is_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, call: str
) -> None:
    assert notes_of(tmp_path, monkeypatch, HOOK.format(test=test, call=call)) == []
