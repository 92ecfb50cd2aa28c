"""The last sample of a batch in the place of the last time step, by a model's text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.fit.batch_axis import last_sample_notes
from tests.config.files import MINIMAL
from tests.config.files import write as write_file

NET = """\
class Net(pl.LightningModule):
    def __init__(self, width=8):
        super().__init__()
        self.rnn = {layer}
        self.head = nn.Linear(width, 2)
    def forward(self, x):
        {call}
        return self.head({taken})
    def training_step(self, batch, batch_idx):
        return self(batch).sum()
    def configure_optimizers(self):
        return make(self.parameters())
"""


def told(layer: str, call: str, taken: str) -> list[str]:
    text = NET.format(layer=layer, call=call, taken=taken)
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.ClassDef)
    return [*last_sample_notes(definition, "Net", lambda line: f"net.py:{line}")]


@pytest.mark.parametrize(
    ("layer", "call", "taken"),
    [
        ("nn.LSTM(4, width)", "out, _ = self.rnn(x)", "out[:, -1]"),
        ("torch.nn.GRU(4, width, num_layers=2)", "out, h = self.rnn(self.emb(x))", "out[:, -1, :]"),
        ("RNN(4, width)", "out, (h, c) = self.rnn(x)", "self.norm(out[:, -1])"),
    ],
)
def test_it_is_noted_with_the_line_and_the_layer(layer: str, call: str, taken: str) -> None:
    """Nothing failed, and each sample saw the others of its batch."""
    part = "out[:, -1, :]" if "-1, :" in taken else "out[:, -1]"
    said = f"Net takes {part} of self.rnn (net.py:8), which has the batch in that dimension"
    write = f"write {layer[:-1]}, batch_first=True) (net.py:4)"
    assert told(layer, call, taken) == [f"{said}: the last sample at each time step; {write}"]


@pytest.mark.parametrize(
    ("layer", "call", "taken"),
    [
        ("nn.LSTM(4, width, batch_first=True)", "out, _ = self.rnn(x)", "out[:, -1]"),
        ("nn.LSTM(4, width, 1, True, True)", "out, _ = self.rnn(x)", "out[:, -1]"),
        ("nn.LSTM(4, width, **more)", "out, _ = self.rnn(x)", "out[:, -1]"),
        ("nn.LSTM(4, width)", "out, _ = self.rnn(x)", "out[-1]"),
        ("nn.LSTM(4, width)", "out, h = self.rnn(x)", "h[0][:, -1]"),
        ("nn.LSTM(4, width)", "out, _ = self.rnn(x); out = out.transpose(0, 1)", "out[:, -1]"),
        ("nn.LSTM(4, width)", "out, _ = self.rnn(x); out = turn(out)", "out[:, -1]"),
        ("nn.LSTM(4, width)", "out, _ = self.rnn(x)", "out[:, 0]"),
        ("nn.LSTM(4, width)", "out, _ = self.rnn(x)", "out[:5, -1]"),
        ("nn.Linear(4, width)", "out, _ = self.rnn(x)", "out[:, -1]"),
    ],
)
def test_what_may_be_meant_is_said_nothing_of(layer: str, call: str, taken: str) -> None:
    assert told(layer, call, taken) == []


def test_it_is_told_at_submission_of_a_config_a_part_of_its_model_and_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    head = "import pytorch_lightning as pl; from torch import nn; make = len\n"
    net = NET.format(layer="nn.LSTM(4, width)", call="out, _ = self.rnn(x)", taken="out[:, -1]")
    data = "class Data(pl.LightningDataModule):\n    def train_dataloader(self): return [1]\n"
    write_file(tmp_path, head + net + data, "nets.py")
    (note,) = (it for it in api.load(write_file(tmp_path, MINIMAL)).notes if "last sample" in it)
    assert note.startswith("nets.Net takes out[:, -1] of self.rnn (")
    part = net.replace("class Net(pl.LightningModule)", "class Part(nn.Module)")
    whole = net.replace("nn.LSTM(4, width)", "Part()").replace("out, _ =", "out =")
    write_file(tmp_path, head + part + whole.replace("out[:, -1]", "out") + data, "nets.py")
    (note,) = (it for it in api.load(write_file(tmp_path, MINIMAL)).notes if "last sample" in it)
    assert note.startswith("nets.Part takes out[:, -1] of self.rnn (")
    write_file(tmp_path, head + net + "pl.Trainer().fit(Net(), [1])\n", "train.py")
    (note,) = (it for it in api.load("train.py").notes if "last sample" in it)
    assert note.startswith("Net takes out[:, -1] of self.rnn (train.py:9)")
