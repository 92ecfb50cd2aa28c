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


def test_a_method_that_a_step_names_and_does_not_call_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = "    def training_step(self, batch):\n        o = self.optimizers()\n        o.step%s\n"
    step += "        return self.layer(1)\n"
    assert said_of(tmp_path, monkeypatch, f"{OPTIMIZER}{step % ''}", DATA) == (
        "cfg.yaml:3: model.class_path: nets.Net names o.step and does not call it, which does"
        " nothing (nets.py:11) -> write o.step()"
    )
    assert said_of(tmp_path, monkeypatch, f"{OPTIMIZER}{step % '()'}", DATA) == ""


def test_parameters_that_are_not_called_for_the_optimizer_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = OPTIMIZER.replace("make(", "torch.optim.SGD(")
    body = f"{made}    def training_step(self, batch): return self.layer(1)\n"
    assert said_of(tmp_path, monkeypatch, body, DATA) == ""
    bare = body.replace("self.parameters()", "self.parameters")
    assert said_of(tmp_path, monkeypatch, bare, DATA) == (
        "cfg.yaml:3: model.class_path: nets.Net gives torch.optim.SGD the method self.parameters"
        " itself, and no parameters (nets.py:8) -> write self.parameters()"
    )


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
        ("return torch.tensor(loss)", "write return loss"),
        ("return torch.tensor(loss, device=self.device)", "write return loss"),
        ("return torch.tensor(loss.item())", "write return loss"),
        ("return torch.tensor(loss.mean())", "write return loss.mean()"),
        ("return float(loss)", "write return loss"),
        ('return {"loss": torch.tensor(loss)}', 'write "loss": loss'),
        ("return loss.detach().clone()", "leave .detach() out"),
        (
            "return (loss.argmax(1) != batch).float().mean()",
            (
                "write a loss such as torch.nn.functional.cross_entropy(loss, y): argmax has no"
                " gradient, and is for an accuracy alone"
            ),
        ),
        ("return (loss.argmax(1) != batch).float().mean() + loss.mean()", ""),
        ("return loss.mean() * batch.argmax(1).float().mean()", ""),
        ("return loss.mean().detach().cpu().float()", "leave .detach() out"),
        (
            "return torch.nn.MSELoss(loss, batch)",
            (
                "torch.nn.MSELoss(loss, batch) makes the loss and does not call it: write"
                " torch.nn.MSELoss()(loss, batch)"
            ),
        ),
        ("return torch.nn.MSELoss()(loss, batch)", ""),
        ("return torch.nn.MSELoss(loss)", ""),
        ("return torch.tensor(loss, requires_grad=True)", ""),
        ("return torch.as_tensor(loss)", ""),
        ("return torch.stack([loss]).mean()", ""),
        ("return loss.detach().add(loss)", ""),
        ("return self.tensor(loss)", ""),
        ("return torch.tensor(loss) if self.x else loss", ""),
        ("if self.x: return torch.tensor(0.0)\n        return loss", ""),
        ("if self.x: return loss\n        return torch.tensor(loss)", ""),
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


STEP = "    def training_step(self, batch, batch_idx):\n"
CALLED = "call the model outside of torch.no_grad()"


def of_lines(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], more: str) -> str:
    """The line that takes the gradient away in a step that begins in line 9, and the fix."""
    body = "".join(f"        {line}\n" for line in lines)
    said = said_of(folder, monkeypatch, f"{OPTIMIZER}{STEP}{body}{more}", DATA)
    return said.partition("without a gradient (nets.py:")[2] if said else ""


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["loss = self(batch)", "loss = loss.detach()", "return loss"], "11) -> leave this line"),
        (["loss = self(batch)", "loss = loss.item()", "return loss"], "11) -> leave this line out"),
        (["loss = self(batch)", "loss = float(loss)", "return loss"], "11) -> leave this line out"),
        (["loss = self(batch)", "loss = torch.tensor(loss.item())", "return loss"],
         "11) -> leave this line out"),
        (["x, y = batch", "loss = torch.nn.NLLLoss(self(x), y, reduction='sum')", "return loss"],
         "11) -> torch.nn.NLLLoss(self(x), y, reduction='sum') makes the loss and does not call"),
        (["x, y = batch", "loss = (self(x).argmax(1) != y).float().mean()", "return loss"],
         "11) -> write a loss such as torch.nn.functional.cross_entropy(self(x), y): argmax"),
        (["x, y = batch", "out = self.layer(x)", "hit = torch.argmax(out, 1) == y",
          "loss = 1 - hit.float().mean()", "return loss"],
         "12) -> write a loss such as torch.nn.functional.cross_entropy(out, y): argmax"),
        (["mse = self(batch)", "loss = torch.tensor(mse)", "return loss"],
         "11) -> leave torch.tensor() out"),
        (["loss = self(batch).mean().detach()", "self.log('loss', loss)", "return {'loss': loss}"],
         "10) -> write loss = self(batch).mean()"),
        (["loss = self(batch).detach()", "loss = loss.mean() * 2", "return loss"],
         "10) -> write loss = self(batch)"),
        (["with torch.no_grad():", "    loss = self(batch).mean()", "return loss"],
         f"10) -> {CALLED}"),
        (["x, y = batch", "with torch.no_grad():", "    out = self(x)",
          "loss = torch.nn.functional.mse_loss(out, y)", "return loss"], f"11) -> {CALLED}"),
        (["x, y = batch", "with torch.inference_mode():", "    out = self.layer(x)",
          "    return (out - y).square().mean().detach()"], "13) -> write return (out - y)"),
        (["x, y = batch", "with torch.no_grad():", "    out = self.layer(x)",
          "    loss = (out - y).square().mean()", "    return loss"], f"11) -> {CALLED}"),
        (["x, y = batch", "with torch.no_grad(): out = self.layer(x)",
          "loss = self.mse(out, y)", "return loss"], f"11) -> {CALLED}"),
    ],
)  # fmt: skip
def test_a_loss_that_loses_its_gradient_in_an_assignment_is_refused_with_that_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], said: str
) -> None:
    more = "    def __init__(self):\n        super().__init__()\n"
    more += "        self.mse = torch.nn.MSELoss()\n"
    assert of_lines(tmp_path, monkeypatch, lines, more).startswith(said)


FORWARD = "    def forward(self, x):\n        "
OF_FORWARD = ["x, y = batch", "loss = torch.nn.functional.mse_loss(self(x), y)", "return loss"]
WITH = "with torch.no_grad():\n            "


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (f"{FORWARD}{WITH}return self.layers(x)\n", "14"),
        (f"{FORWARD}{WITH}x = self.layers(x)\n        return x\n", "14"),
        (f"{FORWARD}{WITH}return x\n", ""),
        (f"{FORWARD}{WITH}return self.weight\n", ""),
        (f"{FORWARD}{WITH}x = self.body(x)\n        return self.head(x)\n", ""),
        (f"{FORWARD}{WITH}x = self.body(x)\n        x = self.head(x)\n        return x\n", ""),
        (f"{FORWARD}if x: return self.layers(x)\n        {WITH}return self.layers(x)\n", ""),
        (f"{FORWARD}return self.layers(x)\n", ""),
        (f"    @torch.no_grad()\n{FORWARD}return self.layers(x)\n", "13"),
        (f"    @torch.compile\n    @torch.no_grad()\n{FORWARD}return self.layers(x)\n", ""),
        (f"{FORWARD}with torch.set_grad_enabled(x):\n            return self.layers(x)\n", ""),
    ],
)
def test_a_forward_that_gives_no_gradient_is_refused_with_that_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, line: str
) -> None:
    said = of_lines(tmp_path, monkeypatch, OF_FORWARD, more)
    assert said == (f"{line}) -> leave torch.no_grad() out of forward" if line else "")


@pytest.mark.parametrize(
    "lines",
    [
        ["loss = self(batch)", "seen = loss.detach()", "self.log('loss', seen)", "return loss"],
        ["loss = self(batch)", "if self.x: loss = loss.detach()", "return loss"],
        ["x, y = batch", "out = self(x)", "acc = (out.argmax(1) == y).float().mean()",
         "loss = torch.nn.functional.cross_entropy(out, y)", "return loss"],
        ["x, y = batch", "y = y.argmax(1)", "loss = self.mse(self(x), y)", "return loss"],
        ["x, y = batch", "soft = self(x)", "hard = torch.argmax(soft, 1).float()",
         "loss = (hard - soft.detach() + soft - y).mean()", "return loss"],
        ["x, y = batch", "best = self(x).argmax(1)", "loss = self.embed(best)", "return loss"],
        ["made = torch.nn.MSELoss(True, True)", "loss = made(self(batch), 1)", "return loss"],
        ["loss = torch.nn.MSELoss(1, 1)", "loss = loss(self(batch), 1)", "return loss"],
        ["made = torch.nn.MSELoss(1, 1)", "return made(self(batch), 1)"],
        ["loss = self(batch).detach()", "if self.x: loss = self(batch)", "return loss"],
        ["loss = self(batch).detach()", "loss = loss + self.layer(1)", "return loss"],
        ["loss = self(batch).detach()", "loss += self.layer(1)", "return loss"],
        ["loss = self(batch).detach()", "loss.add_(self.layer(1))", "return loss"],
        ["loss = self(batch).detach()", "loss[0] = self.layer(1)", "return loss"],
        ["loss = self(batch).detach()", "loss.requires_grad_()", "return loss"],
        ["loss = self(batch).detach()", "for it in batch: loss = self(it)", "return loss"],
        ["loss = torch.tensor(0.0)", "for it in batch: loss = loss + self(it)", "return loss"],
        ["loss = float('inf')", "loss = min(loss, self(batch))", "return loss"],
        ["with torch.no_grad():", "    far = self.teacher(batch)",
         "return (self(batch) - far).mean()"],
        ["with torch.no_grad():", "    z = self.body(batch)", "loss = self.head(z)", "return loss"],
        ["with torch.no_grad(): z = self.body(batch)", "return self.head(z)"],
        ["with torch.no_grad(): z = self.body(batch)", "loss = self.loss(z, 1)", "return loss"],
        ["with torch.no_grad(): w = self.weight", "loss = w.sum()", "return loss"],
        ["with torch.set_grad_enabled(self.x): loss = self(batch)", "return loss"],
        ["with torch.inference_mode(False): loss = self(batch)", "return loss"],
        ["with self.context(): loss = self(batch).detach()", "return loss"],
        ["z = self(batch).detach()", "loss = torch.nn.Linear(1, 1)(z)", "return loss"],
        ["z = self(batch).detach()", "loss = own_loss(z)", "return loss"],
        ["try: loss = self(batch).detach()", "finally: loss = self(batch)", "return loss"],
    ],
)  # fmt: skip
def test_a_loss_that_may_have_its_gradient_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    assert of_lines(tmp_path, monkeypatch, lines, "") == ""


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
