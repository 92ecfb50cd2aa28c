"""self.log in a hook in which Lightning refuses it, of model or callback, before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

HEAD = """\
import pytorch_lightning as pl
import torch

class Net(pl.LightningModule):
    def training_step(self, batch): return self(batch)
    def validation_step(self, batch): self.log("val", 1.0)
"""
OPTIMIZER = "    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)\n"
DATA = """
class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
    def val_dataloader(self): return [1]
"""
GIVEN = "self, trainer, pl_module"


def told(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    model: str = "",
    callback: str = "",
    more: str = "",
) -> tuple[str, list[str]]:
    """The refusal and its fix; and the notes where there is none."""
    monkeypatch.chdir(folder)
    made = f"class Seen(pl.Callback):\n{callback}" if callback else ""
    write(folder, f"{HEAD}{OPTIMIZER}{model}{DATA}\n{made}", "nets.py")
    use = ", callbacks: [{class_path: nets.Seen}]" if callback else ""
    trainer = f"trainer: {{accelerator: cpu, max_epochs: 2{use}{more}}}\n"
    try:
        notes = api.load(write(folder, MINIMAL + trainer)).notes
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}", []
    return "", [it for it in notes if "which Lightning refuses in that hook" in it]


@pytest.mark.parametrize(
    ("hook", "call", "fix"),
    [
        (
            f"on_validation_end({GIVEN})",
            'pl_module.log("a/b", self.peak)',
            (
                "log it in on_validation_epoch_end, or write pl_module.logger.log_metrics({'a/b':"
                " self.peak}, step=pl_module.global_step) in its place"
            ),
        ),
        (
            "on_train_end(self, t, net)",
            'net.log(value=3, name="x", prog_bar=True)',
            (
                "log it in on_train_epoch_end, or write net.logger.log_metrics({'x': 3},"
                " step=net.global_step) in its place"
            ),
        ),
        (
            f"on_fit_end({GIVEN})",
            "trainer.lightning_module.log_dict(self.all)",
            "write pl_module.logger.log_metrics(self.all, step=pl_module.global_step) in its place",
        ),
        (
            f"on_fit_start({GIVEN})",
            'self.log("x", 1)',
            (
                "log it in on_train_start, or write pl_module.logger.log_metrics({'x': 1},"
                " step=pl_module.global_step) in its place"
            ),
        ),
    ],
)
def test_that_of_a_callback_is_refused_with_the_hook_that_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: str, call: str, fix: str
) -> None:
    said, _ = told(tmp_path, monkeypatch, callback=f"    def {hook}:\n        {call}\n")
    name, function = hook.partition("(")[0], call.partition("(")[0]
    assert said == (
        f"cfg.yaml:5: trainer.callbacks.0.class_path: nets.Seen.{name} calls {function}"
        f" (nets.py:15), which Lightning refuses in that hook -> {fix}"
    )


def test_that_of_the_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = '    def on_train_end(self):\n        x = 3\n        self.log("x", x)\n'
    said, _ = told(tmp_path, monkeypatch, model=hook)
    assert said == (
        "cfg.yaml:3: model.class_path: nets.Net.on_train_end calls self.log (nets.py:10), which"
        " Lightning refuses in that hook -> log it in on_train_epoch_end, or write"
        " self.logger.log_metrics({'x': x}, step=self.global_step) in its place"
    )


@pytest.mark.parametrize(
    ("callback", "more"),
    [
        ("    def on_validation_end(GIVEN):\n        if self.x: pl_module.log('x', 1)\n", ""),
        ("    def on_test_end(GIVEN): pl_module.log('x', 1)\n", ""),
        ("    def on_validation_end(GIVEN): self.log('x', 1)\n", ", limit_val_batches: 0"),
        (
            "    def on_fit_end(GIVEN):\n        if self.x: return\n        self.log('x', 1)\n",
            "",
        ),
    ],
)
def test_what_may_not_be_come_to_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, callback: str, more: str
) -> None:
    text = callback.replace("GIVEN", GIVEN)
    said, notes = told(tmp_path, monkeypatch, callback=text, more=more)
    assert said == ""
    assert len(notes) == 1
    assert notes[0].startswith("nets.Seen.on_")


@pytest.mark.parametrize(
    "callback",
    [
        "    def on_validation_epoch_end(GIVEN): pl_module.log('x', 1)\n",
        "    def on_train_start(GIVEN): self.log('x', 1)\n",
        "    def on_validation_end(GIVEN): pl_module.logger.log_metrics({'x': 1}, step=1)\n",
        "    def on_validation_end(GIVEN): math.log(2)\n",
        "    def log(self, x): ...\n    def on_validation_end(GIVEN): self.log('x')\n",
        (
            "    def on_fit_end(GIVEN):\n"
            "        try: self.log('x', 1)\n        except Exception: pass\n"
        ),
        "    def on_fit_end(GIVEN):\n        def late(): self.log('x', 1)\n",
    ],
)
def test_of_what_may_log_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, callback: str
) -> None:
    text = callback.replace("GIVEN", GIVEN)
    assert told(tmp_path, monkeypatch, callback=f"    x = 1\n{text}") == ("", [])
