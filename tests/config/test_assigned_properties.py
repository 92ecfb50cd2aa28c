"""A property of Lightning's that `__init__` assigns is told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.fit.assigned_properties import instead_of_assigning
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

NETS = """\
import logging, torch
import pytorch_lightning as pl

class Net(BASE):
    HEAD
    def __init__(self, lr=0.1, device=None, logger=None, **hparams):
        super().__init__()
        LINES
    def training_step(self, batch, batch_idx): return self(batch).sum()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
class Data(pl.LightningDataModule):
    def __init__(self, size=3):
        super().__init__()
        self.SIZE = dict(size=size)
    def train_dataloader(self): return [1]
"""
SCRIPT = "import pytorch_lightning as pl\nfrom nets import Net, Data\npl.Trainer().fit(MADE)\n"


def net(lines: str, head: str = "", base: str = "pl.LightningModule", size: str = "size") -> str:
    text = NETS.replace("LINES", lines.replace("; ", "\n        ")).replace("SIZE", size)
    return text.replace("HEAD", head).replace("BASE", base)


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, script: str = "") -> str:
    monkeypatch.chdir(folder)
    write(folder, text, "nets.py")
    write(folder, SCRIPT.replace("MADE", script), "train.py")
    try:
        api.load("train.py" if script else write(folder, MINIMAL))
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return ""


SAVE = "which Lightning does not let it -> write self.save_hyperparameters"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("self.hparams = hparams", f"assigns self.hparams (nets.py:8), {SAVE}(hparams) in its pl"),
        ("self.hparams = {'lr': lr}", f"(nets.py:8), {SAVE}({{'lr': lr}}) in its place, which"),
        ("self.x = 1; self.hparams = dict(lr=lr)", f"self.hparams (nets.py:9), {SAVE}(dict(lr=l"),
        ("self.device = torch.device('cuda')", "-> leave it out: Lightning moves the model, and"),
        ("self.device = device", "assigns self.device (nets.py:8), which Lightning"),
        ("self.logger = logging.getLogger()", "-> another name for what is kept there, as in sel"),
        ("self.current_epoch = 0", "as in self.my_current_epoch"),
        # these work, or may
        ("self.logger = logger", ""),
        ("self.logger = MyModule()", ""),
        ("self.hparams = torch.nn.Linear(1, 1)", ""),
        ("self.save_hyperparameters()", ""),
        ("self.hparams.lr = 3; self.hparams['a'] = 2", ""),
        ("self.hparams.update(lr=1); hparams = {}", ""),
        ("self.automatic_optimization = False; self.example_input_array = 0", ""),
        ("if lr: self.hparams = hparams", ""),
        ("if lr:\n            return\n        self.hparams = hparams", ""),
        ("self.lr = lr", ""),
    ],
)
def test_of_a_model_it_is_refused_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, said: str
) -> None:
    text = told(tmp_path, monkeypatch, net(lines))
    assert said in text
    assert text.startswith("cfg.yaml:3: model.class_path: nets.Net.__init__ ") or not said


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ("hparams = None", "pl.LightningModule"),
        ("def hparams(self): ...", "pl.LightningModule"),
        ("def __setattr__(self, name, value): ...", "pl.LightningModule"),
        ("lr = 1", "torch.nn.Module"),
        ("lr = 1", "Mixin, pl.LightningModule"),
    ],
)
def test_of_a_class_that_may_take_it_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, base: str
) -> None:
    text = told(tmp_path, monkeypatch, net("self.hparams = hparams", head, base))
    assert "assigns self" not in text


def test_of_the_data_its_hparams_are_told_and_other_names_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = told(tmp_path, monkeypatch, net("self.lr = lr", size="hparams"))
    assert "data.class_path: nets.Data.__init__ assigns self.hparams (nets.py:14)" in said
    assert told(tmp_path, monkeypatch, net("self.lr = lr", size="device")) == ""


@pytest.mark.parametrize(
    ("script", "is_told"),
    [
        ("Net(), Data()", True),
        ("Net(lr=2), datamodule=Data()", True),
        ("Data()", False),
        ("(lambda: Net())()", False),
    ],
)
def test_in_a_script_it_is_told_of_a_class_that_each_run_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, is_told: bool
) -> None:
    said = told(tmp_path, monkeypatch, net("self.hparams = hparams"), script)
    where = "train.py: script.path: nets.Net.__init__ assigns self.hparams (nets.py:8)"
    assert said.startswith(where) if is_told else said == ""
    own = SCRIPT.replace("MADE", script).replace("from nets import Net, Data\n", "")
    body = net("self.hparams = hparams").partition("class Net")
    write(tmp_path, f"{body[0]}class Net{body[2]}{own}", "own.py")
    if is_told:
        with pytest.raises(ConfigError, match=r"own\.Net\.__init__ assigns .*\(own\.py:8\)"):
            api.load("own.py")


def test_a_long_value_is_not_written_again() -> None:
    import ast

    value = ast.parse(f"x = {{{', '.join(f'{it!r}: 1' for it in 'abcdefghijklmnop')}}}").body[0]
    assert isinstance(value, ast.Assign)
    assert instead_of_assigning("hparams", value.value).startswith("write self.save_hyperparame")
    assert "(...)" in instead_of_assigning("hparams", value.value)
    assert "()" in instead_of_assigning("hparams", None)
