"""What is said of a method that Lightning calls and a class has not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.fit.lacking_methods import check_evaluated
from hpc_train.config.load import load
from hpc_train.config.validate import check_fit
from hpc_train.errors import ConfigError
from hpc_train.plan.evaluations import NEEDED
from tests.config.files import MINIMAL, write

HEAD = "from pytorch_lightning import LightningDataModule, LightningModule\n"
NET = """\
class Net(LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        %s
    def training_step(self, batch, batch_idx): return self.layer(batch)
"""
DATA = """\
class Data(LightningDataModule):
    def train_dataloader(self): return []
"""
VALIDATES = "    def validation_step(self, batch, batch_idx): ...\n"
HELPER = """\
    def _loader(self, n): return [n]
    def val_dataloader(self):
        return self._loader(64)
"""
SHARED = """\
    def step(self, batch): return self.layer(batch)
    def validation_step(self, batch, batch_idx): return self.step(batch)
    def on_test_start(self): ...
    def test_size(self): return 3
"""
LOADS = "    def val_dataloader(self): return []\n"


def project(folder: Path, net: str, data: str = DATA) -> Path:
    write(folder, f"{HEAD}{net}{data}", "nets.py")
    return write(folder, MINIMAL)


@pytest.mark.parametrize(
    ("start", "rate"),
    [
        ("self.lr = lr", "self.lr"),
        ("self.save_hyperparameters()", "self.hparams.lr"),
        ("self.rate = lr", "1e-3"),
    ],
)
def test_a_missing_optimizer_is_told_with_the_lines_to_write(
    tmp_path: Path, start: str, rate: str
) -> None:
    file = project(tmp_path, NET % start)
    with pytest.raises(ConfigError, match=r"nets\.Net has no configure_optimizers") as caught:
        check_fit(load(file), workdir=tmp_path)
    made = f"torch.optim.Adam(self.parameters(), lr={rate})"
    assert caught.value.hint == f"write def configure_optimizers(self): return {made}"


@pytest.mark.parametrize(
    ("verb", "net", "data", "message", "hint"),
    [
        (
            "test",
            VALIDATES,
            LOADS,
            "nets.Net has no test_step, and nets.Data has no test_dataloader, which test calls",
            (
                "write def test_step(self, batch, batch_idx): ...; write def test_dataloader(self):"
                " return DataLoader(DATASET, self.batch_size); or hpc-train validate RUN, for the"
                " validation data"
            ),
        ),
        (
            "test",
            "    def test_step(self, batch, batch_idx): ...\n",
            "",
            "nets.Data has no test_dataloader, which test calls",
            "write def test_dataloader(self): return DataLoader(DATASET, self.batch_size)",
        ),
        (
            "validate",
            "    def val_step(self, batch, batch_idx): ...\n",
            LOADS,
            "nets.Net has no validation_step, which validate calls",
            "rename val_step to validation_step",
        ),
        (  # what the other loaders call is no loader by another name
            "test",
            "    def test_step(self, batch, batch_idx): ...\n",
            HELPER,
            "nets.Data has no test_dataloader, which test calls",
            (
                "write def test_dataloader(self): return self._loader(...), as val_dataloader"
                " (line {line}) does"
            ),
        ),
        (  # nor is what takes an argument
            "test",
            "    def test_step(self, batch, batch_idx): ...\n",
            "    def a_dataloader(self, n): return []\n",
            "nets.Data has no test_dataloader, which test calls",
            "write def test_dataloader(self): return DataLoader(DATASET, self.batch_size)",
        ),
        (
            "test",
            "    def test_step(self, batch, batch_idx): ...\n",
            "    def tests_dataloader(self, n=3): return []\n",
            "nets.Data has no test_dataloader, which test calls",
            "rename tests_dataloader to test_dataloader",
        ),
        (  # of a step, the one that all of them share, and a hook
            "test",
            SHARED,
            "    def test_dataloader(self): return []\n",
            "nets.Net has no test_step, which test calls",
            "write def test_step(self, batch, batch_idx): ...",
        ),
    ],
)
def test_what_an_evaluation_lacks_is_told_together(
    tmp_path: Path, verb: str, net: str, data: str, message: str, hint: str
) -> None:
    file = project(tmp_path, NET % "self.lr = lr" + net, DATA + data)
    with pytest.raises(ConfigError) as caught:
        check_evaluated(load(file), NEEDED[verb], verb, [str(tmp_path), *sys.path])  # type: ignore[index]
    text = (tmp_path / "nets.py").read_text().splitlines()
    line = max((at for at, it in enumerate(text, 1) if "return self._loader(" in it), default=0)
    assert (caught.value.message, caught.value.hint) == (message, hint.format(line=line))
