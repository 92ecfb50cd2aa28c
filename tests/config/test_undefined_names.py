"""A name that the user's module uses and nothing binds is told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

NETS = """\
from __future__ import annotations
from typing import TYPE_CHECKING
import pytorch_lightning as pl
import torch
if TYPE_CHECKING:
    import numpy as np
HEAD

class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        STEP
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
"""


def told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, head: str = ""
) -> tuple[str, list[str]]:
    """The refusal of a config with that training_step, and its notes."""
    monkeypatch.chdir(folder)
    write(folder, NETS.replace("STEP", step).replace("HEAD", head), "nets.py")
    try:
        notes = [it for it in api.load(write(folder, MINIMAL)).notes if "defined nowhere" in it]
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}", []
    return "", notes


@pytest.mark.parametrize(
    ("step", "name", "fix"),
    [
        ("loss = F.mse_loss(batch, batch)", "F", "import torch.nn.functional as F"),
        ("loss = torch.stack([nn.ReLU()(it) for it in batch]).sum()", "", ""),
        ("loss = self(bacth).sum()", "bacth", "define bacth, or import it"),
        ("loss = os.path.join(batch)", "os", "import os"),
        ("loss = Tensr(batch)", "Tensr", "define Tensr, or import it"),
        ("loss = trainin(batch)", "trainin", "did you mean 'training'?"),
    ],
)
def test_what_each_step_uses_and_nothing_binds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, name: str, fix: str
) -> None:
    head = "def training(it): return it"
    refused, notes = told(tmp_path, monkeypatch, step, head)
    if not name:  # the list may be empty
        assert (refused, notes) == ("", ["nets.py:11: nn is defined nowhere in nets.py: " + NN])
        return
    assert refused == (
        f"cfg.yaml:3: model.class_path: nets.py:11: {name} is defined nowhere in nets.py -> {fix}"
    )


NN = "from torch import nn"


@pytest.mark.parametrize(
    ("head", "step"),
    [
        ("", "if self.training:\n            F.relu(batch)\n        loss = batch.sum()"),
        ("", "if batch is None:\n            return None\n        loss = F.relu(batch)"),
        ("def helper(x):\n    return F.relu(x)", "loss = batch.sum()"),
        ("class Other(pl.LightningModule):\n    def f(self): F.relu(1)", "loss = batch.sum()"),
        ("", "loss = batch.sum() if len(batch) else F.relu(batch)"),
    ],
)
def test_what_not_each_training_comes_to_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, step: str
) -> None:
    refused, (note,) = told(tmp_path, monkeypatch, step, head)
    assert refused == ""
    assert note.endswith(": F is defined nowhere in nets.py: import torch.nn.functional as F")


@pytest.mark.parametrize(
    ("head", "step"),
    [
        ("import torch.nn.functional as F", "loss = F.relu(batch)"),
        ("from torch.nn.functional import *", "loss = relu(batch)"),
        ("try:\n    import F\nexcept ImportError:\n    F = None", "loss = F.relu(batch)"),
        ("def setup():\n    global F\n    import F\n", "loss = F.relu(batch)"),
        ("exec('F = 1')", "loss = F"),
        ("globals()['F'] = 1", "loss = F"),
        ("import sys\nsetattr(sys.modules[__name__], 'F', 1)", "loss = F"),
        ("import torch.nn.functional\nimport os.path", "loss = torch.sum(os.path)"),
        ("", "try:\n            F\n        except NameError:\n            pass\n        loss = 1"),
        ("", "import torch.nn.functional as F\n        loss = F.relu(batch)"),
        ("", "F = self.layer\n        loss = (lambda x: F(x))(batch)"),
        ("", "loss = sum(x for x in batch) + len(__file__) + super().x"),
        ("", "def inner(y: F) -> F: return y\n        loss = inner(batch)"),
        ("", "x: F = 1\n        loss = batch.sum()"),
        ("def helper(x: np.ndarray) -> np.ndarray: ...", "loss = batch.sum()"),
        ("for F in range(3): ...", "loss = F"),
        ("def top(F): return F.relu(1)", "loss = batch.sum()"),
        ("with open(__file__) as F: ...", "loss = F"),
        ("[F := 1]", "loss = F"),
        ("match 1:\n    case F: ...", "loss = F"),
        ("class Mixed:\n    F = 1\n    G = F", "loss = batch.sum()"),
    ],
)
def test_what_is_bound_in_some_way_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, step: str
) -> None:
    assert told(tmp_path, monkeypatch, step, head) == ("", [])


def test_what_a_module_uses_as_it_is_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, _ = told(tmp_path, monkeypatch, "loss = 1", "torch.manual_seed(SEED)")
    said = "nets.py:7: SEED is defined nowhere in nets.py -> define SEED, or import it"
    assert refused.endswith(said)


@pytest.mark.parametrize(
    ("step", "fix"),
    [
        ("self.net = 1\n        loss = net(batch)", "did you mean self.net?"),
        ("loss = configure_optimizers()", "did you mean self.configure_optimizers?"),
        ("loss = train_dataloader()", "define train_dataloader, or import it"),
    ],
)
def test_what_the_class_has_is_meant_with_self(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, fix: str
) -> None:
    refused, _ = told(tmp_path, monkeypatch, step)
    assert refused.endswith(f" is defined nowhere in nets.py -> {fix}")


LATER = "return loss\n    def own(self, x):\n        "


@pytest.mark.parametrize(
    ("step", "fix"),
    [
        ("loss = batch.to(device)", "write self.device"),
        ("loss = self(batch, self.x).to(dtype)", "write self.dtype"),
        ("loss = 1; log('loss', loss)", "write self.log"),
        ("loss = [it.to(device) for it in batch]", ""),
    ],
)
def test_what_lightning_gives_the_module_is_meant_with_self(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, fix: str
) -> None:
    refused, notes = told(tmp_path, monkeypatch, step)
    if not fix:  # the list may be empty
        assert notes == ["nets.py:11: device is defined nowhere in nets.py: write self.device"]
        return
    assert refused.endswith(f" is defined nowhere in nets.py -> {fix}")


@pytest.mark.parametrize(
    ("head", "fix"),
    [
        ("def put(x): return x.to(device)", "define device, or import it"),
        (
            "class D(pl.LightningDataModule):\n    def f(self): device",
            "define device, or import it",
        ),
        ("class B(torch.nn.Module):\n    def f(self): device", "define device, or import it"),
        ("class O(pl.LightningModule):\n    def f(self): device", "write self.device"),
        ("class O(pl.LightningModule): ...\nclass P(O):\n    def f(self): device", "write s"),
        (
            "class O(pl.LightningModule):\n    def f(self, x=lambda: device):\n        pass",
            "define device, or import it",
        ),
        ("class O(pl.LightningModule):\n    @staticmethod\n    def f(x): device", "define device"),
    ],
)
def test_what_another_object_has_not_is_not_meant_with_self(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, fix: str
) -> None:
    _, (note,) = told(tmp_path, monkeypatch, "loss = batch.sum()", head)
    assert f" device is defined nowhere in nets.py: {fix}" in note


@pytest.mark.parametrize(
    ("head", "fix"),
    [
        (
            "get_ipython().run_line_magic('matplotlib', 'inline')\nx = get_ipython().system('ls')",
            (
                "leave out what a notebook alone runs: line 7"
                " (get_ipython().run_line_magic('matplotlib', 'inline')), line 8 (x ="
                " get_ipython().system('ls'))"
            ),
        ),
        (
            "get_ipython().run_cell_magic('time', '', 'f()')",
            (
                "leave out what a notebook alone runs: line 7 (get_ipython().run_cell_magic('time',"
                " '', 'f()')); of a run_cell_magic keep the code that it was for"
            ),
        ),
        ("display(torch)", "display is a notebook's alone: write print(...), or take the line out"),
    ],
)
def test_what_a_notebook_left_is_to_be_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, fix: str
) -> None:
    refused, _ = told(tmp_path, monkeypatch, "loss = batch.sum()", head)
    assert refused.endswith(f" is defined nowhere in nets.py -> {fix}")


def test_a_notebooks_own_names_that_are_imported_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "from IPython import get_ipython\nfrom IPython.display import display\ndisplay(1)"
    assert "defined nowhere" not in told(tmp_path, monkeypatch, "loss = get_ipython()", head)[0]
