"""A loss of torch.nn that is kept as the class is refused before the queue, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_sure_refusals import DATA, said_of

NET = """
    def __init__(self):
        super().__init__()
        self.loss = torch.nn.CrossEntropyLoss
        self.layer = torch.nn.Linear(2, 2)
    def forward(self, x): return self.layer(x)
    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        loss = self.loss(out, y)
        return loss
    def validation_step(self, batch, batch_idx): ...
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
"""
CALL, KEPT = "loss = self.loss(out, y)", "self.loss = torch.nn.CrossEntropyLoss"


def said(folder: Path, patch: pytest.MonkeyPatch, new: dict[str, str], more: str = "") -> str:
    text = NET
    for old, wanted in new.items():
        assert old in text
        text = text.replace(old, wanted)
    return said_of(folder, patch, text, f"{more}{DATA}")


@pytest.mark.parametrize(
    ("new", "written"),
    [
        ({}, "torch.nn.CrossEntropyLoss"),
        ({CALL: "return self.loss(out, y)"}, "torch.nn.CrossEntropyLoss"),
        ({CALL: "loss = self.loss(out, y).mean()"}, "torch.nn.CrossEntropyLoss"),
        ({"torch.nn.CrossEntropyLoss": "torch.nn.MSELoss"}, "torch.nn.MSELoss"),
        (
            {"def __init__": "loss = torch.nn.L1Loss\n    def __init__", f"        {KEPT}\n": ""},
            "",
        ),
        (
            {
                CALL: "loss = self.cost(out, y)",
                "    def valid": "    def cost(self, a, b): return self.loss(a, b)\n    def valid",
            },
            "torch.nn.CrossEntropyLoss",
        ),
    ],
)
def test_the_line_that_keeps_it_is_told_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str], written: str
) -> None:
    told = said(tmp_path, monkeypatch, new)
    if not written:  # of a class's own body the rank tells it
        assert told == ""
        return
    where = f"keeps the class {written} in self.loss (nets.py:11), and calls it with tensors"
    assert f"model.class_path: nets.Net {where} (nets.py:" in told
    assert told.endswith(f"-> write self.loss = {written}()")


def test_an_activation_that_a_forward_calls_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = {KEPT: "self.act = torch.nn.GELU", CALL: "loss = out.sum()"}
    new["return self.layer(x)"] = "return self.act(self.layer(x))"
    assert said(tmp_path, monkeypatch, new).endswith("-> write self.act = torch.nn.GELU()")


@pytest.mark.parametrize(
    "new",
    [
        {KEPT: f"{KEPT}()"},
        {CALL: "loss = self.loss()(out, y)"},
        {CALL: "loss = self.loss(self.weight, None)(out, y)"},
        {CALL: "cost = self.loss(self.weight, out); loss = cost(out, y)"},
        {CALL: "cost = self.loss(self.weight, out)\n        loss = cost(out, y)"},
        {CALL: "loss = self.loss(out)"},
        {CALL: "loss = self.loss(weight=out, reduce=y)"},
        {CALL: "if make: loss = self.loss(out, y)\n        else: loss = out.sum()"},
        {KEPT: f"{KEPT}\n        self.loss = make()"},
        {KEPT: f"{KEPT}\n        self.loss, self.other = make()"},
        {KEPT: "self.loss = torch.nn.functional.cross_entropy"},
        {KEPT: "self.loss = make"},
        {KEPT: f"{KEPT}\n        setattr(self, make(), 1)"},
        {"def training_step": "@given\n    def training_step"},
    ],
)
def test_what_may_be_made_there_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str]
) -> None:
    assert said(tmp_path, monkeypatch, new) == ""


def test_a_layer_that_a_step_makes_of_a_size_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = {KEPT: "self.kind = torch.nn.Linear", CALL: "loss = self.kind(make, make)(out)"}
    assert said(tmp_path, monkeypatch, new) == ""
