"""Samplers that a method, the class itself or the user's own code makes, told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import write
from tests.config.test_sure_refusals import said_of

OPTIMIZER = "    def configure_optimizers(self): return make(self.parameters())\n"
HEAD = """
from torch.utils.data import DataLoader, DistributedSampler, Sampler, WeightedRandomSampler
from mine import Shared, sampler_of
class Rare(Sampler):
    def __iter__(self): return iter([1])
class Heavy(WeightedRandomSampler): ...
class Own(DistributedSampler): ...
class Data(pl.LightningDataModule):
"""
SAYS = "the order that {} gives cannot be continued by other ranks or after an interruption"
WEIGHTED = SAYS.format("WeightedRandomSampler")
LOADER = "def train_dataloader(self): return DataLoader(1, 8, sampler={})"
METHOD = LOADER.format("self.rare()")
KEPT = LOADER.format("self.rare")
MADE = "WeightedRandomSampler([1], 8)"


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], step: str = "") -> str:
    write(
        folder,
        "from torch.utils.data import Sampler\nclass Shared(Sampler): ...\n"
        "def sampler_of(n): ...\n",
        "mine.py",
    )
    body = "".join(f"    {line}\n" for line in lines)
    return said_of(folder, monkeypatch, f"{OPTIMIZER}{step}", f"{HEAD}{body}")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([METHOD, f"def rare(self): return {MADE}"], WEIGHTED),
        ([METHOD, "def rare(self):", f"    s = {MADE}", "    return s"], WEIGHTED),
        ([KEPT, f"def setup(self, stage=None): self.rare = {MADE}"], WEIGHTED),
        ([LOADER.format("Rare(1)")], SAYS.format("Rare")),
        ([LOADER.format("Heavy([1], 8)")], SAYS.format("Heavy")),
        ([LOADER.format("Shared(1)")], SAYS.format("Shared")),
        ([METHOD, "def rare(self): return Rare(1)"], SAYS.format("Rare")),
    ],
)
def test_a_sampler_that_is_surely_given_is_told_with_its_line(
    lines: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = said(tmp_path, monkeypatch, lines)
    assert "data.class_path: train_dataloader (nets.py:" in refused
    assert told in refused
    assert ("weights in the loss" in refused) == ("Weighted" in told or "Heavy" in told)


@pytest.mark.parametrize(
    "lines",
    [
        [LOADER.format("Own(1)")],
        [LOADER.format("sampler_of(1)")],
        [METHOD, f"def rare(self): return {MADE} if self.x else None"],
        [METHOD, "def rare(self):", f"    if self.x: return {MADE}", "    return None"],
        [METHOD, "@property", f"def rare(self): return {MADE}"],
        [METHOD, "def rare(self): return self.other"],
        [LOADER.format("self.rare(1)"), "def rare(self, n): return None"],
        [KEPT, f"def setup(self, stage=None): self.rare = {MADE} if self.x else None"],
        [KEPT, "rare = None", "def setup(self, stage=None):", f"    if 1: self.rare = {MADE}"],
        [KEPT, "def setup(self, stage=None):", f"    if self.x: self.rare = {MADE}"],
        [KEPT, f"def weigh(self): self.rare = {MADE}"],
        [KEPT],
    ],
)
def test_where_another_order_may_be_given_nothing_is_said(
    lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(tmp_path, monkeypatch, lines) == ""


@pytest.mark.parametrize(
    ("loss", "example"),
    [
        (
            "torch.nn.functional.binary_cross_entropy_with_logits(self(batch), 1)",
            "(binary_cross_entropy_with_logits(..., pos_weight=...))",
        ),
        ("torch.nn.functional.cross_entropy(self(batch), 1)", "(cross_entropy(..., weight=...))"),
        ("torch.nn.BCEWithLogitsLoss()(self(batch), 1)", "(BCEWithLogitsLoss(pos_weight=...))"),
        ("torch.nn.CrossEntropyLoss()(self(batch), 1)", "(CrossEntropyLoss(weight=...))"),
        (
            "self(batch).sum()",
            "(CrossEntropyLoss(weight=...) or BCEWithLogitsLoss(pos_weight=...))",
        ),
    ],
)
def test_the_weights_are_those_of_the_models_own_loss(
    loss: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = f"    def training_step(self, batch, batch_idx): return {loss}\n"
    refused = said(tmp_path, monkeypatch, [LOADER.format(MADE)], step)
    assert f"use shuffle=True and weights in the loss {example}; for another order" in refused
