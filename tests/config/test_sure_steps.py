"""Steps that cannot be called, losses without a gradient and samplers, told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check_methods
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write
from tests.config.test_sure_refusals import said_of

OPTIMIZER = "    def configure_optimizers(self): return make(self.parameters())\n"
VALIDATES = "    def val_dataloader(self): return [1]\n"
DATA = "\nclass Data(pl.LightningDataModule):\n    def train_dataloader(self): return [1]\n"
DATA += VALIDATES


def of_step(
    folder: Path, monkeypatch: pytest.MonkeyPatch, takes: str, name: str = "training_step"
) -> str:
    """The refusal of a model whose step stands in line 9, and takes that."""
    body = f"{OPTIMIZER}    def {name}({takes}): return self.layer(1)\n"
    return said_of(folder, monkeypatch, body, DATA)


@pytest.mark.parametrize("name", ["training_step", "validation_step"])
@pytest.mark.parametrize(
    ("takes", "said"),
    [
        ("self", "takes no batch"),
        ("self, *, batch", "takes no batch"),
        ("self, batch, *, more", "needs more by keyword, and Lightning gives none"),
    ],
)
def test_a_step_that_no_call_fits_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, takes: str, said: str
) -> None:
    assert of_step(tmp_path, monkeypatch, takes, name) == (
        f"cfg.yaml:3: model.class_path: nets.Net.{name} (nets.py:9) {said} ->"
        f" write def {name}(self, batch, batch_idx)"
    )


def test_too_many_arguments_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = of_step(tmp_path, monkeypatch, "self, a, b, c, d", "validation_step")
    assert "needs a, b, c, d, and Lightning gives batch, batch_idx, dataloader_idx" in said
    said = of_step(tmp_path, monkeypatch, "self, a, b, c, *more")
    assert "needs a, b, c, and Lightning gives batch, batch_idx ->" in said


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("training_step", "self, batch"),
        ("training_step", "self, batch, batch_idx"),
        ("training_step", "self, batch, batch_idx, more=1"),
        ("training_step", "self, batch, batch_idx, *, more=1"),
        ("training_step", "self, *args"),
        ("training_step", "self, *args, **kwargs"),
        ("training_step", "*args"),
        ("training_step", "self, dataloader_iter"),
        ("validation_step", "self, batch, batch_idx, dataloader_idx"),
        ("validation_step", "self, batch=None"),
        ("test_step", "self"),  # which a fit does not call
        ("forward", "self"),
    ],
)
def test_a_step_that_can_be_called_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, takes: str
) -> None:
    assert of_step(tmp_path, monkeypatch, takes, name) == ""


@pytest.mark.parametrize(
    ("body", "data"),
    [
        ("    @wrapped\n    def training_step(self): return 1\n", DATA),
        ("    def validation_step(self): return 1\n", DATA.replace(VALIDATES, "")),
        ("    def validation_step(self): ...\n    validation_step = other\n", DATA),
    ],
)
def test_a_step_that_may_be_another_or_uncalled_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, data: str
) -> None:
    assert said_of(tmp_path, monkeypatch, f"{OPTIMIZER}{body}", data) == ""


def test_the_step_may_be_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = "import pytorch_lightning as pl\nclass Base(pl.LightningModule):\n"
    write(tmp_path, f"{base}    def validation_step(self): return 1\n", "base.py")
    body = f"{OPTIMIZER}class Other(pl.LightningModule): ...\n"
    more = f"from base import Base\nclass Own(Base, Net): ...\n{DATA}"
    monkeypatch.setattr("tests.config.test_sure_refusals.MINIMAL", MINIMAL.replace(".Net", ".Own"))
    said = said_of(tmp_path, monkeypatch, body, more)
    assert "nets.Own.validation_step (base.py:3) takes no batch -> write def val" in said


@pytest.mark.parametrize("verb", ["test", "predict"])
def test_an_evaluation_is_refused_for_its_own_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.chdir(tmp_path)
    head = "import pytorch_lightning as pl\nclass Net(pl.LightningModule):\n"
    loader = f"    def {verb}_dataloader(self): return [1]\n"
    text = f"{head}    def {verb}_step(self): return 1\n{DATA}{loader}"
    loaded = load(write(tmp_path, MINIMAL))
    write(tmp_path, text, "nets.py")
    needed = ((f"{verb}_step",), f"{verb}_dataloader")
    with pytest.raises(ConfigError, match=rf"nets.Net.{verb}_step \(nets.py:3\) takes no batch"):
        check_methods(loaded, needed, verb, workdir=tmp_path)


LOSS = "    def training_step(self, batch, batch_idx):\n        loss = self.layer(batch)\n"


@pytest.mark.parametrize(
    ("end", "fix"),
    [
        ("return loss.detach()", "write return loss"),
        ("return loss.item()", "write return loss"),
        ("return self.layer(batch).mean().detach()", "write return self.layer(batch).mean()"),
        ('return {"loss": loss.detach(), "n": 1}', 'write "loss": loss'),
        ("return {'loss': loss, 'n': loss.detach()}", ""),
        ("return loss", ""),
        ("return loss.detach().requires_grad_()", ""),
        ("return [loss.detach()]", ""),
        ("return {**self.more, 'loss': loss.detach()}", ""),
        ("return loss if self.x else loss.detach()", ""),
        ("if self.x: return loss\n        return loss.detach()", ""),
        ("return loss.detach()\n    def backward(self, loss): ...", ""),
        ("self.manual_backward(loss)\n        return loss.detach()", ""),
        ("return loss.detach()\n    automatic_optimization = False", ""),
    ],
)
def test_a_loss_that_surely_has_no_gradient_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, fix: str
) -> None:
    said = said_of(tmp_path, monkeypatch, f"{OPTIMIZER}{LOSS}        {end}\n", DATA)
    where = "cfg.yaml:3: model.class_path: nets.Net.training_step gives a loss without a gradient"
    assert said == (f"{where} (nets.py:11) -> {fix}" if fix else "")


TORCH = """
from torch.utils import data
from torch.utils.data import DataLoader, DistributedSampler, SubsetRandomSampler
from torch.utils.data.sampler import WeightedRandomSampler as Weighted
from mine import OwnLoader, own_sampler
class Data(pl.LightningDataModule):
    def train_dataloader(self):
"""
WEIGHTED = "the order that WeightedRandomSampler gives cannot be continued by other ranks or after"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["return DataLoader(1, 8, sampler=Weighted([1], 8))"], WEIGHTED),
        (["return DataLoader(1, sampler=Weighted([1], 8), shuffle=True)"], WEIGHTED),
        (["return data.DataLoader(1, sampler=data.WeightedRandomSampler([1], 8))"], WEIGHTED),
        (["s = Weighted([1], 8)", "return DataLoader(1, sampler=s)"], WEIGHTED),
        (["l = DataLoader(1, sampler=Weighted([1], 8))", "return l"], WEIGHTED),
        (["return DataLoader(1, sampler=SubsetRandomSampler([1]))"], "order that SubsetRandomS"),
        (["return DataLoader(1, sampler=DistributedSampler(1), shuffle=True)"],
         "torch refuses sampler=DistributedSampler(...) beside shuffle=True -> leave the sampler"),
        (["return DataLoader(1, sampler=DistributedSampler(1))"], ""),
        (["return DataLoader(1, shuffle=True)"], ""),
        (["return DataLoader(1, sampler=None, shuffle=True)"], ""),
        (["return DataLoader(1, sampler=own_sampler(), shuffle=True)"], ""),
        (["return DataLoader(1, sampler=self.sampler, shuffle=True)"], ""),
        (["return OwnLoader(1, sampler=Weighted([1], 8))"], ""),
        (["return DataLoader(1, sampler=Weighted([1], 8) if self.x else None)"], ""),
        (["s = Weighted([1], 8)", "if self.x: s = None", "return DataLoader(1, sampler=s)"], ""),
        (["if self.x: return DataLoader(1)", "return DataLoader(1, sampler=Weighted([1], 8))"],
         ""),
        (["return DataLoader(1, **{'sampler': Weighted([1], 8), **self.more})"], ""),
    ],
)  # fmt: skip
def test_a_sampler_that_cannot_be_continued_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], said: str
) -> None:
    write(tmp_path, "def own_sampler(): ...\nOwnLoader = None\n", "mine.py")
    body = "".join(f"        {it}\n" for it in lines)
    refused = said_of(tmp_path, monkeypatch, OPTIMIZER, f"{TORCH}{body}")
    assert (said in refused) if said else refused == ""
    if said:
        place = "cfg.yaml:4: data.class_path: train_dataloader (nets.py:16): "
        assert refused.startswith(place), refused
