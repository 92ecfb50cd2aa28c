"""Several optimizers, which Lightning 2 leaves to the model, and `optimizer_idx` of Lightning 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check_training
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL

CONFIG = f"{MINIMAL}trainer: {{accelerator: cpu}}\n"
NETS = """\
import torch
from torch import optim
from torch.optim import Adam
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    def training_step(self, batch, batch_idx%s):
        loss = self.a(batch).sum()
        return loss
    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.a.parameters(), lr=0.1)
        opt_d = optim.SGD(self.b.parameters(), lr=0.1)
        s = torch.optim.lr_scheduler.StepLR(opt_g, 1)
        return %s
class Data(LightningDataModule):
    def train_dataloader(self): return [torch.ones(2, 1)]
"""
PAIR = "opt_g, opt_d = self.optimizers() and for each of them its loss and opt_g.zero_grad();"
STEP = "write self.automatic_optimization = False in __init__, def training_step(self, batch, b"


def refusal(folder: Path, text: str) -> str:
    (folder / "nets.py").write_text(text)
    file = folder / "cfg.yaml"
    file.write_text(CONFIG)
    try:
        check_training(load(file), workdir=folder)
    except ConfigError as error:
        return f"{error.message} | {error.hint}".replace(f"{file}:", "")
    return ""


@pytest.mark.parametrize(
    ("returned", "named"),
    [
        ("[opt_g, opt_d]", "opt_g, opt_d = "),
        ("[opt_g, opt_d], []", "opt_g, opt_d = "),
        ("opt_g, opt_d", "opt_g, opt_d = "),
        ("[opt_g, opt_d], [s]", "opt_g, opt_d = "),
        ("(opt_g, Adam(self.b.parameters()))", "opt_g, opt2 = "),
        ("[{'optimizer': opt_g, 'lr_scheduler': s}, {'optimizer': opt_d}]", "opt_g, opt_d = "),
        ("[opt_g, opt_d, Adam(self.b.parameters())]", "opt_g, opt_d, opt3 = "),
    ],
)
def test_several_that_lightning_would_step_itself_are_refused(
    tmp_path: Path, returned: str, named: str
) -> None:
    said = refusal(tmp_path, NETS % ("", returned))
    what = "3: model.class_path: nets.Net returns several optimizers (nets.py:16), which Lightning"
    assert said.startswith(f"{what} 2 leaves to the model | for one loss, one optimizer: torch.opt")
    assert f"for a loss each, {STEP}" in said
    assert f"and in it {named}self.optimizers() and for each" in said


@pytest.mark.parametrize("taken", [", optimizer_idx", ", optimizer_idx, hiddens=None"])
def test_the_index_of_an_optimizer_is_told_with_how_a_model_steps_them(
    tmp_path: Path, taken: str
) -> None:
    what = "nets.Net: its training_step (line 9) needs optimizer_idx, which Lightning 2 does not"
    said = refusal(tmp_path, NETS % (taken, "[opt_g, opt_d]"))
    assert f"{what} give | with the optimizers of line 16 {STEP}" in said
    assert f"and in it {PAIR}" in said
    one = NETS % (taken, "opt_g")
    assert "give | with one optimizer write def training_step(self, batch, batch_idx); with" in (
        refusal(tmp_path, one)
    )
    used = one.replace(
        "        loss = ", "        if optimizer_idx == 0: print(1)\n        loss = "
    )
    assert "batch_idx), and take optimizer_idx out of line 10; with several" in (
        refusal(tmp_path, used)
    )
    default = refusal(tmp_path, NETS % (", optimizer_idx=0", "opt_g"))
    assert f"{what.replace('needs', 'takes')} give | with one optimizer write def tr" in default
    given = NETS.replace("super().__init__()", "super().__init__(); self.automatic_optimization ="
                         " False").replace("return loss", "pass")  # fmt: skip
    assert refusal(tmp_path, given % ("", "[opt_g, opt_d]")) == ""


@pytest.mark.parametrize(
    "text",
    [
        NETS % ("", "opt_g"),
        NETS % ("", "[opt_g]"),
        NETS % ("", "[opt_g], [s]"),
        NETS % ("", "{'optimizer': opt_g, 'lr_scheduler': s}"),
        NETS % ("", "[opt_g, opt_d][:1]"),
        NETS % ("", "[opt_g, *self.others]"),
        NETS % ("", "[opt_g, made_of(opt_d)]"),
        NETS % ("", "[opt_g, opt_d] if self.by_hand else opt_g"),
        (NETS % ("", "[opt_g, opt_d]")).replace("        s = ", "        if self.one: return opt_g"
                                                "\n        s = "),
        (NETS % ("", "[opt_g, opt_d]")).replace("class Net(LightningModule)", "class Base("
            "LightningModule):\n    automatic_optimization = False\nclass Net(Base)"),
        (NETS % ("", "[opt_g, opt_d]")).replace("    def training", "    @property\n    def"
            " automatic_optimization(self): return False\n    def training"),
        (NETS % ("", "opt_g, opt_d")).replace("        s = ", "        opt_d = [s]\n        s = "),
    ],
)  # fmt: skip
def test_what_may_train_is_taken(tmp_path: Path, text: str) -> None:
    assert "several optimizers" not in refusal(tmp_path, text)
