"""Models that optimize by hand: a clipping that Lightning refuses, optimizers without a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

MODEL = """\
import torch
import pytorch_lightning as pl

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        opt_g, opt_d = self.optimizers()
        opt_g.zero_grad()
        self.manual_backward(self.layer(batch).sum())
        opt_g.step()
        opt_d.zero_grad()
        self.manual_backward(self.layer(batch).sum())
        opt_d.step()

    def configure_optimizers(self):
        made = [torch.optim.SGD(self.parameters(), 0.1) for _ in range(2)]
        return made, []

class Data(pl.LightningDataModule):
    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(64, 2), batch_size=8)
"""
UNSTEPPED = MODEL.replace("        opt_g.step()\n", "").replace("        opt_d.step()\n", "")
ONE = (
    UNSTEPPED.replace("opt_g, opt_d =", "opt =").replace("opt_g.", "opt.").replace("opt_d.", "opt.")
)
OFF = "sets automatic_optimization = False"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(folder: Path, model: str, *words: str) -> tuple[str, list[str]]:
    """What is refused, with its fix; and the notes."""
    write(folder, model, "nets.py")
    try:
        notes = api.load(write(folder, MINIMAL), *words).notes
    except ConfigError as error:
        return f"{error.message} -> {error.hint}", []
    return "", [it for it in notes if "learned" in it]


@pytest.mark.parametrize("value", ["0.5", "1", "1.0"])
def test_a_clipping_by_the_trainer_is_refused_with_the_call(tmp_path: Path, value: str) -> None:
    said, _ = loaded(tmp_path, MODEL, f"trainer.gradient_clip_val={value}")
    assert said == (
        "command line: trainer.gradient_clip_val is nothing that Lightning does where nets.Net"
        f" {OFF} (nets.py:7) -> leave it out; write self.clip_gradients(opt,"
        f" gradient_clip_val={value}) in front of opt.step()"
    )


def test_its_algorithm_goes_with_it(tmp_path: Path) -> None:
    words = ("trainer.gradient_clip_val=1", "trainer.gradient_clip_algorithm=value")
    said, _ = loaded(tmp_path, MODEL, *words)
    assert "leave it out, and gradient_clip_algorithm; write self.clip_gradients(opt," in said
    assert "gradient_clip_val=1, gradient_clip_algorithm='value') in front" in said


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (MODEL, ()),
        (MODEL, ("trainer.gradient_clip_val=0",)),
        (MODEL, ("trainer.gradient_clip_val=null",)),
        (MODEL.replace("= False", "= True"), ("trainer.gradient_clip_val=1",)),
        (
            MODEL.replace("        self.auto", "        if 0: self.auto"),
            ("trainer.gradient_clip_val=1",),
        ),
        (
            MODEL.replace(
                "    def conf", "    def on(self): self.automatic_optimization = True\n    def conf"
            ),
            ("trainer.gradient_clip_val=1",),
        ),
    ],
)
def test_what_lightning_takes_is_taken(tmp_path: Path, model: str, words: tuple[str, ...]) -> None:
    assert loaded(tmp_path, model, *words) == ("", [])


def test_a_batch_in_parts_is_refused_with_what_to_write(tmp_path: Path) -> None:
    said, _ = loaded(tmp_path, MODEL, "micro_batch_size=2", "slurm.gpus_per_node=1")
    assert said == (
        f"command line: micro_batch_size makes several micro batches a step, and nets.Net {OFF}"
        " (nets.py:7) -> leave it out, or write global_batch_size=2 and step in training_step: if"
        " (batch_idx + 1) % 4 == 0: opt.step(); opt.zero_grad()"
    )
    words = ("micro_batch_size=2", "slurm.gpus_per_node=4")  # of each rank all of its share
    assert loaded(tmp_path, MODEL, *words) == ("", [])
    automatic = MODEL.replace("= False", "= True")
    assert loaded(tmp_path, automatic, "micro_batch_size=2") == ("", [])


def test_an_accumulation_of_the_trainers_is_told_as_that_of_the_step(tmp_path: Path) -> None:
    said, _ = loaded(tmp_path, MODEL, "trainer.accumulate_grad_batches=2")
    by_hand = "training_step steps itself: if (batch_idx + 1) % 2 == 0: opt.step(); opt.zero_grad()"
    assert said.endswith(f"leave it out: with automatic_optimization = False (line 7) {by_hand}")
    automatic = MODEL.replace("= False", "= True")
    said, _ = loaded(tmp_path, automatic, "trainer.accumulate_grad_batches=2")
    assert "micro_batch_size" in said


def test_optimizers_that_nothing_steps_are_noted_with_the_calls(tmp_path: Path) -> None:
    (said,) = loaded(tmp_path, UNSTEPPED)[1]
    assert said == (
        f"nets.Net {OFF} (line 7), takes its optimizers (line 11) and steps none, so that nothing"
        " is learned: write opt_g.step() and opt_d.step(), behind its manual_backward"
    )
    (said,) = loaded(tmp_path, ONE)[1]
    assert "takes its optimizer (line 11) and steps none" in said
    assert said.endswith("write opt.step(), behind its manual_backward")


@pytest.mark.parametrize(
    "model",
    [
        UNSTEPPED.replace("opt_d.zero", "self.go(opt_g); opt_d.zero"),
        UNSTEPPED.replace("opt_d.zero", "for it in (opt_g, opt_d): it.step()\n        opt_d.zero"),
        UNSTEPPED.replace("opt_d.zero", "self.kept = opt_d\n        opt_d.zero"),
        UNSTEPPED.replace("(pl.LightningModule)", "(Base, pl.LightningModule)"),
        UNSTEPPED.replace("= self.optimizers()", "= all = self.optimizers()"),
        UNSTEPPED.replace("    def conf", "    def on(self): self.opt.step()\n    def conf"),
    ],
)  # fmt: skip
def test_what_may_be_stepped_elsewhere_is_not_noted(tmp_path: Path, model: str) -> None:
    model = model.replace("class Net", "class Base: ...\nclass Net")
    assert loaded(tmp_path, model)[1] == []


LOG = MODEL.replace("        opt_d.step()", "        loss = name = both = log = batch\n        {}")


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        ('self.log(loss, "train_loss")', "write self.log('train_loss', loss)"),
        (
            'self.log(loss, "a", prog_bar=True)',
            "write self.log('a', loss, prog_bar=True)",
        ),
        ('self.log(loss, "a", True)', "write self.log('a', loss, True)"),
        ('self.log("acc", "high")', "write self.log(NAME, VALUE), with a number for VALUE"),
    ],
)
def test_a_text_for_a_value_is_refused_with_the_call(tmp_path: Path, call: str, fix: str) -> None:
    said, _ = loaded(tmp_path, LOG.format(call))
    assert "and the name comes first (nets.py:18)" in said
    assert said.endswith(f"-> {fix}")


@pytest.mark.parametrize(
    "call", ['self.log("a", loss)', "self.log(name, loss)", "self.log(*both)", 'log.log(1, "a")']
)
def test_a_name_in_front_is_taken(tmp_path: Path, call: str) -> None:
    assert "comes first" not in loaded(tmp_path, LOG.format(call))[0]


def test_a_log_of_the_models_own_is_its_own_affair(tmp_path: Path) -> None:
    own = LOG.format('self.log(1, "info")').replace(
        "    def conf", "    def log(self, level, text): ...\n\n    def conf"
    )
    assert "comes first" not in loaded(tmp_path, own)[0]
