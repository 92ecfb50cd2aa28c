"""What Lightning surely refuses as a fit begins is refused before the queue; what may be is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.load import load
from hpc_train.config.validate import check_methods
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

HEAD = """\
import torch
import pytorch_lightning as pl; make = given = DataLoader = len
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import ReduceLROnPlateau

class Net(pl.LightningModule):
    def training_step(self, batch): return self.layer(batch)
"""
OPTIMIZER = "    def configure_optimizers(self):\n        opt = torch.optim.SGD([], 0.1)\n"
GIVES = f"{OPTIMIZER}        return opt\n"
DATA = """
class Data(pl.LightningDataModule):
    def train_dataloader(self): return [1]
"""


def said_of(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str, data: str = DATA) -> str:
    """The refusal of a config of that model, in one line; empty where there is none."""
    monkeypatch.chdir(folder)
    write(folder, f"{HEAD}{body}{data}", "nets.py")
    try:
        api.load(write(folder, MINIMAL))
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return ""


@pytest.mark.parametrize("hook", ["training_epoch_end", "validation_epoch_end"])
def test_a_hook_with_which_lightning_refuses_to_run_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: str
) -> None:
    said = said_of(tmp_path, monkeypatch, f"{GIVES}    def {hook}(self, outputs): ...\n")
    word = hook.removesuffix("ing_epoch_end").removesuffix("_epoch_end")
    step = hook.replace("epoch_end", "step")
    assert said == (
        f"cfg.yaml:3: model.class_path: nets.Net has a {hook} (nets.py:11), which Lightning 2"
        f" refuses to run with -> write def on_{word}_epoch_end(self), and have {step} keep in"
        " self what it needs of the outputs"
    )


def test_the_hook_may_be_that_of_a_base_in_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f"{HEAD}{GIVES}    def training_epoch_end(self, out): ...\n", "base.py")
    write(tmp_path, "import pytorch_lightning as pl\nfrom base import Net as Base\n"
          f"class Net(Base):\n    pass\n{DATA}", "nets.py")  # fmt: skip
    with pytest.raises(ConfigError, match=r"nets.Net has a training_epoch_end \(base.py:11\)"):
        api.load(write(tmp_path, MINIMAL))


@pytest.mark.parametrize(
    "body",
    [
        "    def on_epoch_end(self): ...\n",  # which nobody calls
        "    def test_epoch_end(self, outputs): ...\n",  # which a fit does not look at
        "    def on_validation_epoch_end(self): ...\n",
        "    validation_epoch_end = None\n",
        "    def validation_epoch_end(self): ...\n    validation_epoch_end = None\n",
        "    if pl.__version__ < '2':\n        def validation_epoch_end(self, out): ...\n",
        "    def validation_epoch_end(self, out): ...\nNet.validation_epoch_end = None\n",
        "    @property\n    def validation_epoch_end(self): ...\n",
        "class Other(pl.LightningModule):\n    def validation_epoch_end(self, outputs): ...\n",
    ],
)
def test_a_hook_that_may_not_end_the_fit_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    assert said_of(tmp_path, monkeypatch, GIVES + body) == ""


def test_an_evaluation_is_refused_for_its_own_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = "    def test_step(self, batch): ...\n    def validation_step(self, batch): ...\n"
    hook = "    def test_epoch_end(self, outputs): ...\n"
    loaders = "    def test_dataloader(self): ...\n    def val_dataloader(self): ...\n"
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f"{HEAD}{GIVES}{steps}{hook}{DATA}{loaders}", "nets.py")
    loaded = load(write(tmp_path, MINIMAL))
    needed = (("validation_step",), "val_dataloader")
    check_methods(loaded, needed, "validate", workdir=tmp_path)
    with pytest.raises(ConfigError, match="has a test_epoch_end"):
        check_methods(loaded, (("test_step",), "test_dataloader"), "test", workdir=tmp_path)


PLATEAU = "        s = lr_scheduler.ReduceLROnPlateau(opt)\n"


@pytest.mark.parametrize(
    ("body", "is_refused"),
    [
        (f"{PLATEAU}        return [opt], [s]\n", True),
        (f'{PLATEAU}        return {{"optimizer": opt, "lr_scheduler": s}}\n', True),
        (f"{PLATEAU}        return [opt], [{{'scheduler': s}}]\n", True),
        ("        return [opt], [ReduceLROnPlateau(opt)]\n", True),
        ("        return [opt], [torch.optim.lr_scheduler.ReduceLROnPlateau(opt)]\n", True),
        (f"{PLATEAU}        return [opt], [{{'scheduler': s, 'monitor': 'loss'}}]\n", False),
        (f"{PLATEAU}        return opt\n", False),
        (f"{PLATEAU}        s = lr_scheduler.StepLR(opt, 1)\n        return [opt], [s]\n", False),
        (f"{PLATEAU}        return given(opt, s)\n", False),
        (f"{PLATEAU}        return [opt], [{{'scheduler': s, **self.more}}]\n", False),
        (f"        if self.x:\n    {PLATEAU}        return [opt], [s]\n", False),
        (f"{PLATEAU}        if self.x: return opt\n        return [opt], [s]\n", False),
        (f"{PLATEAU}        return [opt], [s]\n    automatic_optimization = False\n", False),
        ("        return [opt], [pl.cli.ReduceLROnPlateau(opt, 'loss')]\n", False),
    ],
)
def test_a_plateau_without_a_monitor_is_refused_where_it_is_surely_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, is_refused: bool
) -> None:
    said = said_of(tmp_path, monkeypatch, OPTIMIZER + body)
    assert bool(said) is is_refused, said
    if is_refused:
        assert said.startswith("cfg.yaml:3: model.class_path: nets.Net returns a ReduceLROnPlateau")
        assert "(nets.py:10) and names no monitor, which Lightning refuses -> return {" in said


@pytest.mark.parametrize(
    ("loader", "hint"),
    [
        ("        DataLoader(1)\n", "write return in front of line 13"),
        ("        loader = DataLoader(1)\n", "end it with: return loader"),
        ("        return DataLoader(1)\n", ""),
        ("        yield 1\n", ""),
        ("        raise NotImplementedError\n", ""),
        ("        ...\n", ""),
        ("        pass\n", "end it with: return DataLoader(...)"),
        ('        """To do."""\n', "end it with: return DataLoader(...)"),
        ("        return None\n", "end it with: return DataLoader(...)"),
        ("        if self.x: return None\n        return [1]\n", ""),
        ("        pass\n    def setup(self, stage): self.train_dataloader = lambda: [1]\n", ""),
        ("        pass\nData.train_dataloader = lambda self: [1]\n", ""),
    ],
)
def test_a_train_dataloader_that_returns_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: str, hint: str
) -> None:
    data = f"class Data(pl.LightningDataModule):\n    def train_dataloader(self):\n{loader}"
    said = said_of(tmp_path, monkeypatch, GIVES, data)
    where = "data.class_path: nets.Data has a train_dataloader (nets.py:12) that returns nothing"
    assert bool(said) is bool(hint), said
    if hint:
        assert said == f"cfg.yaml:4: {where}, so no batch would come -> {hint}"


TWO = "from {} import LightningDataModule, Callback, LightningModule\n"


@pytest.mark.parametrize(
    ("model", "data", "callback", "said"),
    [
        (TWO.format("lightning.pytorch"), TWO.format("pytorch_lightning"), "", "nets2.Data"),
        (TWO.format("pytorch_lightning"), TWO.format("lightning"), "", "nets2.Data"),
        (TWO.format("lightning"), TWO.format("lightning.pytorch"), "", ""),
        (TWO.format("lightning"), TWO.format("lightning.pytorch"), "nets2.Call", ""),
        (TWO.format("lightning"), TWO.format("pytorch_lightning"), "nets3.Call", "nets2.Data"),
        (TWO.format("lightning"), TWO.format("lightning"), "nets3.Call", "nets3.Call"),
        (
            TWO.format("lightning"),
            (
                f"try:\n    {TWO.format('lightning.pytorch')}except ImportError:\n"
                f"    {TWO.format('pytorch_lightning')}"
            ),
            "pytorch_lightning.callbacks.LearningRateFinder",
            "",
        ),
    ],
)
def test_classes_of_the_two_packages_of_lightning_are_refused_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, data: str, callback: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    steps = "import torch\nclass Net(LightningModule):\n"
    steps += f"    def training_step(self, b): return b\n{GIVES}"
    write(tmp_path, f"{model}{steps}", "nets.py")
    below = DATA.replace("pl.", "") + "class Call(Callback): ...\n"
    write(tmp_path, data + below, "nets2.py")
    write(tmp_path, TWO.format("pytorch_lightning") + below, "nets3.py")
    text = MINIMAL.replace("nets.Data", "nets2.Data")
    if callback.startswith("nets"):
        text += f"trainer: {{callbacks: [{{class_path: {callback}}}]}}\n"
    path = write(tmp_path, text)
    if not said:
        api.load(path)
        return
    with pytest.raises(ConfigError) as caught:
        api.load(path)
    assert f"class_path: {said} ({said.partition('.')[0]}.py:" in caught.value.message
    assert "no Trainer takes both" in caught.value.message
    assert "have both import the same of the two: from" in caught.value.hint
