"""A batch size in `train_dataloader` that the config's decides over is noted before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api, sweeps
from tests.config.files import MINIMAL, write

NETS = """\
import torch
import pytorch_lightning as pl
from torch.utils.data import DataLoader
class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx): return self(batch).sum()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
class Data(pl.LightningDataModule):
    HEAD
    def __init__(self, batch_size: int = 4, size: int = 32, none: int = 0, *, kept=32, of=None):
        super().__init__()
        self.batch_size = batch_size
        LINES
    def train_dataloader(self): return DataLoader([1], SIZE)
"""
SAYS = (
    "nets.Data has train_dataloader give batches of {}, and global_batch_size, 8, decides what a"
    " rank has: let __init__ take batch_size, which is then filled in, and give the loader that"
)


def notes(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: str,
    lines: str = "",
    head: str = "",
    words: tuple[str, ...] = (),
) -> list[str]:
    monkeypatch.chdir(folder)
    text = NETS.replace("SIZE", size).replace("LINES", lines or "...")
    write(folder, text.replace("HEAD", head or "name = 1"), "nets.py")
    loaded = api.load(write(folder, MINIMAL), "global_batch_size=8", *words)
    return [it for it in loaded.notes if "batches of" in it]


@pytest.mark.parametrize(
    ("size", "lines", "head"),
    [
        ("32", "", ""),
        ("batch_size=32", "", ""),
        ("self.size", "self.size = 32", ""),
        ("batch_size=self.size", "self.size: int = 32", ""),
        ("self.size", "self.size = size", ""),
        ("self.size", "self.size = kept", ""),
        ("self.size", "self.size, self.kept = size, kept", ""),
        ("self.hparams.size", "self.save_hyperparameters()", ""),
        ("self.size", "", "size = 32"),
    ],
)
def test_a_number_that_the_class_keeps_is_noted_as_a_literal_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, lines: str, head: str
) -> None:
    assert notes(tmp_path, monkeypatch, size, lines, head) == [SAYS.format(32)]


@pytest.mark.parametrize(
    ("size", "lines", "head"),
    [
        ("self.batch_size", "", ""),
        ("8", "", ""),
        ("4", "", ""),  # of each of two ranks
        ("self.size", "self.size = batch_size", ""),
        ("self.size", "self.size = of or 32", ""),
        ("self.size", "self.size = of", ""),
        ("self.size", "self.size = none", ""),
        ("self.size", "self.size = 32\n        self.size *= 2", ""),
        ("self.size", "if of: self.size = 32", ""),
        ("self.size", "self.kept, self.size = size, of", ""),
        ("self.size", "self.size, self.kept = of", ""),
        ("self.hparams.get('size', 8)", "", ""),
        ("self.hparams.size", "self.save_hyperparameters('none')", ""),
        ("self.hparams.size", "size = 8\n        self.save_hyperparameters()", ""),
        ("self.size", "self.size = 32\n        setattr(self, 'size', 8)", ""),
        ("self.size", "self.size = 32", "size = 16"),
        ("self.trainer.size", "", ""),
        ("self.missing", "", ""),
    ],
)
def test_what_is_filled_in_or_not_sure_is_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, lines: str, head: str
) -> None:
    shape = ("slurm.gpus_per_node=2",)
    assert notes(tmp_path, monkeypatch, size, lines, head, shape) == []


def test_what_the_config_gives_the_argument_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("data.init_args.size=64",)
    kept = "self.size = size"
    said = notes(tmp_path, monkeypatch, "self.size", kept, words=given)
    assert said == [SAYS.format(64)]
    given = ("data.init_args.size=8",)
    assert notes(tmp_path, monkeypatch, "self.size", kept, words=given) == []


def test_an_init_of_a_base_class_is_not_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = "    def __init__(self): self.size = 32\nclass Data(Base):"
    text = NETS.replace("class Data(pl.LightningDataModule):", f"class Base(B):\n{base}")
    text = text.replace("class Net", "B = pl.LightningDataModule\nclass Net", 1)
    monkeypatch.setattr("tests.config.test_loader_numbers.NETS", text)
    assert notes(tmp_path, monkeypatch, "self.size") == []


WORKERS = """
class Data(pl.LightningDataModule):
    def __init__(self, workers: int = 0, batch_size: int = 4):
        super().__init__()
        self.workers, self.batch_size = workers, batch_size
    def train_dataloader(self): return DataLoader([1], num_workers=self.workers)
"""
STARTS = (
    "nets.Data has train_dataloader start 16 workers a rank, and slurm.cpus_per_gpu is 1: write"
)


def test_workers_by_a_name_of_the_class_are_noted_with_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, NETS.partition("class Data")[0] + WORKERS, "nets.py")
    words = ("data.init_args.workers=16", "slurm.cpus_per_gpu=1")
    told = f"{STARTS} data.init_args.workers=0, or slurm.cpus_per_gpu=17 where a node has 17 CPUs"
    assert told in api.load(write(tmp_path, MINIMAL), *words).notes
    swept = api.load(write(tmp_path, MINIMAL), words[1], sweep=["data.init_args.workers=16,2"])
    assert told in sweeps.notes_on_first(swept)
    fewer = api.load(write(tmp_path, MINIMAL), words[1], sweep=["data.init_args.workers=1,2"])
    assert not [it for it in sweeps.notes_on_first(fewer) if "workers a rank" in it]
