"""Hooks of a model's, a data's and a callback's text that Lightning 2 calls otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.fit.hook_notes import hook_notes, only_prepared
from hpc_train.config.python_text.class_kind import locate


def notes(folder: Path, kind: str, body: str, base: str = "") -> list[str]:
    head = f"import pytorch_lightning as pl\n\nclass It({base or f'pl.{kind}'}):\n"
    (folder / "own_hooks.py").write_text(head + body)
    path = [str(folder), *sys.path]
    found = locate("own_hooks.It", path)
    assert found is not None
    return [*hook_notes(kind, "own_hooks.It", found, path), *only_prepared("It", found, path)]


def test_a_hook_of_lightning_1_is_noted_with_how_lightning_2_calls_it(tmp_path: Path) -> None:
    body = (
        "    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, d): ...\n"
        "    def on_validation_end(self, trainer): ...\n"
        "    def on_epoch_end(self, trainer, pl_module): ...\n"
    )
    takes = "def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx)"
    ends, write = "def on_validation_end(self, trainer, pl_module)", "write on_train_epoch_end"
    assert notes(tmp_path, "Callback", body) == [
        f"own_hooks.It has an on_train_batch_end (line 4), and Lightning calls it as {takes}",
        f"own_hooks.It has an on_validation_end (line 5), and Lightning calls it as {ends}",
        f"own_hooks.It has an on_epoch_end (line 6), which Lightning 2 does not call: {write}",
    ]
    (said,) = notes(tmp_path, "LightningModule", "    def on_train_epoch_end(self, outputs): ...\n")
    assert said.endswith("as def on_train_epoch_end(self)")
    (said,) = notes(
        tmp_path, "LightningModule", "    def validation_epoch_end(self, outputs): ...\n"
    )
    assert said.endswith("which Lightning 2 refuses to run with: write on_validation_epoch_end")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("Callback", "    def on_train_end(self, *args): ...\n"),
        ("Callback", "    def on_train_end(self, trainer, pl_module, more=1): ...\n"),
        ("Callback", "    def on_validation_batch_end(self, t, m, o, batch, batch_idx): ...\n"),
        ("Callback", "    def on_test_batch_end(self, t, m, o, b, i, loader): ...\n"),
        ("Callback", "    @wrap\n    def on_train_end(self): ...\n"),
        ("Callback", "    def helper(self, a, b, c, d, e, f, g): ...\n"),
        (
            "Callback",
            "    def on_epoch_end(self): ...\n    def on_fit_end(self, t, m): self.on_epoch_end()",
        ),
        ("LightningModule", "    def optimizer_step(self, *args, **kwargs): ...\n"),
        ("LightningModule", "    def setup(self, stage=None): ...\n"),
        ("LightningDataModule", "    def on_epoch_end(self): ...\n"),
        ("LightningDataModule", "    def setup(self, stage): self.x = 1\n"),
    ],
)
def test_a_hook_that_fits_or_may_is_not_noted(tmp_path: Path, kind: str, body: str) -> None:
    assert notes(tmp_path, kind, body) == []


PREPARES = "    def prepare_data(self): self.train = 1\n"
READS = "    def train_dataloader(self): return self.train\n"


def test_what_prepare_data_alone_assigns_and_another_method_reads_is_noted(tmp_path: Path) -> None:
    (said,) = notes(tmp_path, "LightningDataModule", PREPARES + READS)
    assert said == (
        "It assigns self.train in prepare_data (line 4), which one rank of a node alone runs:"
        " assign it in setup(self, stage)"
    )
    for more in (
        "    def setup(self, stage): self.train = 1\n",
        "    def __init__(self): self.train = None\n",
    ):
        assert notes(tmp_path, "LightningDataModule", PREPARES + READS + more) == []
    assert notes(tmp_path, "LightningDataModule", PREPARES) == []


def test_of_a_class_of_ones_own_below_it_is_noted_where_its_setup_does_not_run(
    tmp_path: Path,
) -> None:
    base = f"import pytorch_lightning as pl\nclass Base(pl.LightningDataModule):\n{READS}"
    (tmp_path / "own_base.py").write_text(base)
    for body, count in (
        (f"{PREPARES}    def setup(self, stage): pass\n", 1),
        (f"{PREPARES}    def setup(self, stage): super().setup(stage)\n", 0),
        (PREPARES, 0),
    ):
        (tmp_path / "own_hooks.py").write_text(
            f"from own_base import Base\nclass It(Base):\n{body}"
        )
        path = [str(tmp_path), *sys.path]
        found = locate("own_hooks.It", path)
        assert found is not None
        assert len([*only_prepared("It", found, path)]) == count, body
