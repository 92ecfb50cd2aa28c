"""Hooks that Lightning surely calls, and cannot: refused before the queue, with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.validate import check_fit
from hpc_train.errors import ConfigError
from tests.config.files import loaded, write

HEAD = "import pytorch_lightning as pl; make = len\nfrom pytorch_lightning import Callback\n"
NET = """
class Net(pl.LightningModule):
    def training_step(self, batch): return self.layer(batch)
    def configure_optimizers(self): return make(self.parameters())
"""
DATA = "class Data(pl.LightningDataModule):\n    def train_dataloader(self): return [1]\n"
GIVEN = "trainer, pl_module"


def said_of(folder: Path, callback: str, *, model: str = "", trainer: str = "") -> str:
    """The refusal of a config with that callback, `nets.Call`, whose text begins in line 3."""
    write(folder, f"{HEAD}{callback}\n{NET}{model}\n{DATA}", "nets.py")
    more = f"trainer:\n  callbacks:\n  - class_path: nets.Call\n{trainer}"
    try:
        check_fit(loaded(folder, more), workdir=folder)
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return ""


@pytest.mark.parametrize(
    ("method", "takes", "given"),
    [
        ("on_train_epoch_end(self, trainer)", "trainer", GIVEN),
        ("on_train_epoch_end(self)", "nothing", GIVEN),
        ("on_train_start(self, a, b, c)", "a, b, c", GIVEN),
        ("on_fit_start(self, a, b, *, more)", "a, b, more by keyword", GIVEN),
        ("on_train_batch_end(self, a, b)", "a, b", f"{GIVEN}, outputs, batch, batch_idx"),
        ("setup(self, trainer, pl_module, what)", "trainer, pl_module, what", f"{GIVEN}, stage"),
        ("setup(self, stage)", "stage", f"{GIVEN}, stage"),
    ],
)
def test_a_callbacks_hook_that_no_call_fits_is_refused(
    tmp_path: Path, method: str, takes: str, given: str
) -> None:
    said = said_of(tmp_path, f"class Call(Callback):\n    def {method}: ...\n")
    name = method.partition("(")[0]
    key = "cfg.yaml:7: trainer.callbacks.0.class_path"
    where = f"nets.Call.{name} (nets.py:4)"
    fix = f"write def {name}(self, {given})"
    assert said == f"{key}: {where} takes {takes}, and Lightning gives {given} -> {fix}"


def test_a_hook_of_the_model_and_of_a_base_are_read_as_well(tmp_path: Path) -> None:
    plain = "class Call(Callback): ..."
    said = said_of(tmp_path, plain, model="    def on_train_epoch_end(self, outputs): ...\n")
    assert "model.class_path: nets.Net.on_train_epoch_end (nets.py:8) takes outputs" in said
    assert said.endswith("Lightning gives nothing -> write def on_train_epoch_end(self)")
    base = "class Base(Callback):\n    def on_train_end(self): ...\nclass Call(Base): ...\n"
    assert "nets.Call.on_train_end (nets.py:4) takes nothing" in said_of(tmp_path, base)


@pytest.mark.parametrize(
    "body",
    [
        "    def on_train_epoch_end(self, trainer, pl_module): ...",
        "    def on_train_epoch_end(self, *args): ...",
        "    def on_train_epoch_end(self, trainer, *rest, **more): ...",
        "    def on_train_epoch_end(self, a=None, b=None, c=None): ...",
        "    def on_train_epoch_end(self, a, b, *, more=1): ...",
        "    @wrapped\n    def on_train_epoch_end(self, trainer): ...",
        "    @staticmethod\n    def on_train_epoch_end(trainer, pl_module): ...",
        "    def on_train_epoch_end(self): ...\n    on_train_epoch_end = other",
        "    def setup(self, trainer, pl_module, *, stage): ...",
        "    def setup(self, trainer, pl_module, stage=None): ...",
        "    def on_train_epoch_ended(self, trainer): ...",
        "    def on_validation_end(self, trainer): ...",
        "    def on_test_end(self, trainer): ...",
        "    async def on_train_end(self): ...",
        "    ...",
    ],
)
def test_a_hook_that_fits_or_may_never_be_called_is_not_refused(tmp_path: Path, body: str) -> None:
    assert said_of(tmp_path, f"class Call(Callback):\n{body}\n") == ""


@pytest.mark.parametrize(
    ("head", "trainer"),
    [
        ("Unknown = max([Callback])\nclass Call(Unknown):", ""),
        ("@wrapped\nclass Call(Callback):", ""),
        ("class Call(Callback, metaclass=Meta):", ""),
        ("class Call:", ""),
        ("class Call(Callback):", "  max_epochs: 0\n"),
        ("class Call(Callback):", "  limit_train_batches: 0\n"),
    ],
)
def test_of_a_class_that_may_be_another_and_a_fit_of_no_step_nothing_is_said(
    tmp_path: Path, head: str, trainer: str
) -> None:
    text = f"{head}\n    def on_train_epoch_end(self, trainer): ...\n"
    assert said_of(tmp_path, text, trainer=trainer) == ""
