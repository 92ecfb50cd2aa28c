"""Mistakes in modules and their imports, told by their text before anything is submitted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from tests.cli.mistaken import CONFIG, NETS, project, refused

__all__ = ["project"]

MODULE = """\
import torch
from pytorch_lightning import LightningModule
class Base(LightningModule): ...
class Net(LightningModule):
    def __init__(self, width):
        super().__init__()
    def training_step(self, batch, batch_idx):
        loss = self.net(batch)
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
"""
STEPS = """\
    def training_step(self, batch): ...
    def configure_optimizers(self): ...
"""
LOADERS = "import torch; from torch.utils.data import DataLoader\n"
STEP, OPTIMIZER = "        return loss\n", "        return torch.optim.SGD"


@pytest.mark.parametrize(
    ("before", "after", "message", "fix"),
    [
        (STEP, "", "training_step (line 7) that returns nothing", "end it with: return loss"),
        (
            OPTIMIZER,
            OPTIMIZER.replace("return ", ""),
            "configure_optimizers (line 10) that returns nothing, so nothing would be learned",
            "write return in front of line 11",
        ),
        (
            OPTIMIZER,
            OPTIMIZER.replace("return", "optimizer ="),
            "configure_optimizers (line 10)",
            "end it with: return optimizer",
        ),
        (
            STEP,
            "        def closure(): return loss\n",
            "training_step (line 7)",
            "end it with: return loss",
        ),
    ],
)
def test_a_method_that_returns_nothing_is_refused(
    hpc, project: Path, before: str, after: str, message: str, fix: str
) -> None:
    (project / "nets.py").write_text(NETS.replace("class Net(", "class Other(") + MODULE)
    assert hpc("submit", "cfg.yaml", "--dry-run").code == 0
    text = MODULE.replace(before, after)
    assert text != MODULE
    (project / "nets.py").write_text(text + NETS.replace("class Net(", "class Other("))
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, fix)
    refused(
        hpc, project, ["submit", "cfg.yaml", "--sweep", "seed=1,2", "--dry-run"], 3, message, fix
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (STEP, "        self.automatic_optimization = False\n"),
        (STEP, "        self.optimizers().step()\n"),
        (STEP, "        self.manual_backward(loss); loss.backward()\n"),
        (STEP, "        return None\n"),
        (STEP, "        yield loss\n"),
        (STEP, "        if self.x: return\n"),
        (STEP, "        super().training_step(batch, batch_idx)\n"),
        ("        loss = self.net(batch)\n" + STEP, "        ...\n"),
        ("        loss = self.net(batch)\n" + STEP, '        """Later."""\n        pass\n'),
        (STEP, "        raise NotImplementedError\n"),
        ("class Net(LightningModule)", "class Net(Base)"),
        ("class Net(", "@torch.compile\nclass Net("),
        ("    def training_step", "    @wrapped\n    def training_step"),
        (OPTIMIZER, "        self.sgd = torch.optim.SGD"),
        ("SGD(self.parameters(), 0.1)\n", "SGD(self.parameters(), 0.1) if self.x else None\n"),
    ],
)
def test_a_method_that_may_be_meant_so_is_not_refused(
    hpc, project: Path, before: str, after: str
) -> None:
    """What returns nothing where the class may optimize by hand, or has both ends empty."""
    text = MODULE.replace(before, after)
    assert text != MODULE
    if "self.sgd" in after or "class Net" in before:
        text = text.replace(STEP, "")  # neither a loss nor an optimizer, or another's step
    (project / "nets.py").write_text(text + NETS.replace("class Net(", "class Other("))
    said = hpc("submit", "cfg.yaml", "--dry-run")
    assert "returns nothing" not in said.err, said


@pytest.mark.parametrize(
    ("before", "after", "noted"),
    [
        ("class Net(LightningModule)", "class Net(Base)", True),
        (STEP, "        super().training_step(batch, batch_idx)\n", True),
        (STEP, "        return None\n", True),
        (STEP, "        if self.x: return\n", True),
        (STEP, "        self.automatic_optimization = False\n", False),
        (STEP, "        self.optimizers().step()\n", False),
        (STEP, "        yield loss\n", False),
        (STEP, "        raise NotImplementedError\n", False),
        ("    def training_step", "    @wrapped\n    def training_step", False),
        (STEP, STEP, False),
    ],
)
def test_a_step_that_gives_no_loss_is_noted_where_it_may_be_meant(
    hpc, project: Path, before: str, after: str, noted: bool
) -> None:
    text = MODULE.replace(before, after)
    if STEP not in (before, after):
        text = text.replace(STEP, "")
    (project / "nets.py").write_text(text + NETS.replace("class Net(", "class Other("))
    said = hpc("submit", "cfg.yaml", "--dry-run")
    note = "nets.Net has a training_step (line 7) that gives no loss: unless it optimizes by hand"
    assert (note in said.err) is noted, said


PLATEAU = """\
        opt = torch.optim.SGD(self.parameters(), 0.1)
        return Base.own(opt, {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(opt)})
"""
WATCHES = PLATEAU.replace("(opt)}", '(opt), "monitor": "val_loss"}')


@pytest.mark.parametrize("returned", [PLATEAU, WATCHES, f"{PLATEAU}        opt.step()\n"])
def test_a_plateau_that_may_get_a_monitor_is_noted(hpc, project: Path, returned: str) -> None:
    made = f"{OPTIMIZER}(self.parameters(), 0.1)\n"
    (project / "nets.py").write_text(MODULE.replace(made, returned) + NETS.replace("Net(", "O("))
    said = hpc("submit", "cfg.yaml", "--dry-run")
    note = "nets.Net makes a ReduceLROnPlateau (line 12) and names no monitor, which Lightning"
    assert (note in said.err) is (returned is PLATEAU), said
    assert ('{"scheduler": s, "monitor": "val_loss"}}' in said.err) is (returned is PLATEAU)


ASKS = """
    def on_train_end(self):
        print(self.trainer.checkpoint_callback.best_model_path)
"""
ASKS_IF = """
    def on_train_end(self):
        if self.trainer.checkpoint_callback:
            print(self.trainer.checkpoint_callback.best_model_path)
"""
OF_LIGHTNING = "pytorch_lightning.callbacks"


@pytest.mark.parametrize(
    ("method", "callback", "noted"),
    [
        (ASKS, "", True),
        (ASKS, f"{OF_LIGHTNING}.EarlyStopping, init_args: {{monitor: val_loss}}", True),
        (ASKS, f"{OF_LIGHTNING}.ModelCheckpoint", False),
        (ASKS, "nets.Saves", False),
        (ASKS_IF, "", False),
        ("", "", False),
    ],
)
def test_a_model_that_asks_for_a_model_checkpoint_where_none_is_is_noted(
    hpc, project: Path, method: str, callback: str, noted: bool
) -> None:
    saves = (
        "from pytorch_lightning.callbacks import ModelCheckpoint\nclass Saves(ModelCheckpoint): ..."
    )
    others = NETS.replace("class Net(", "class Other(")
    (project / "nets.py").write_text(MODULE.replace(STEP, STEP + method) + others + "\n" + saves)
    callbacks = f"[{{class_path: {callback}}}]" if callback else "[]"
    said = hpc("submit", "cfg.yaml", f"trainer.callbacks={callbacks}", "--dry-run")
    note = "which is None without a ModelCheckpoint: add {class_path: pytorch_lightning.callbacks."
    assert (note in said.err) is noted, said


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("from data import Set", "write from flowers.data import Set, since it is in the folder"),
        ("import data", "write from flowers import data, since it is in the folder flowers"),
        ("from parts.blocks import B", "write from flowers.parts.blocks import B, since"),
        ("from utils import accuracy", "utils.py of the project is missing"),
        ("from losses import focal", "losses.py of the project is missing"),
    ],
)
def test_a_file_of_the_project_is_named_and_no_package_of_that_name(
    hpc, project: Path, line: str, fix: str
) -> None:
    flowers = project / "flowers"
    (flowers / "parts").mkdir(parents=True)
    (flowers / "parts" / "__init__.py").touch()
    (flowers / "parts" / "blocks.py").write_text("B = 1\n")
    (flowers / "data.py").write_text("class Set: ...\n")
    (flowers / "model.py").write_text(f"{line}\n{NETS}")
    words = ["submit", "cfg.yaml", "--dry-run", "model.class_path=flowers.model.Net"]
    words.append("model.init_args.width=3")
    package = line.split()[1].partition(".")[0]
    message = f"flowers/model.py:1: imports '{package}', which is not installed"
    said = hpc(*words)
    error, hint = said.err.splitlines()[-2:]
    assert (said.code, message in error) == (3, True)
    assert hint.startswith(f"  fix: {fix}")
    assert "pip" not in hint
    if "write " in fix:  # what is written is right
        fixed = hint.partition("write ")[2].partition(", since")[0]
        (flowers / "model.py").write_text(f"{fixed}\n{NETS}")
        assert hpc(*words).code == 0


def test_folders_in_folders_without_init_are_imported_as_python_does(hpc, project: Path) -> None:
    (project / "src" / "models" / "nets").mkdir(parents=True)
    shutil.copy(project / "nets.py", project / "src" / "models" / "nets" / "own.py")
    words, width = ["submit", "cfg.yaml", "--dry-run"], "model.init_args.width=3"
    assert hpc(*words, "model.class_path=src.models.nets.own.Net", width).code == 0
    said = hpc(*words, "model.class_path=src.models.nets.own.Ne")
    assert (said.code, "did you mean 'src.models.nets.own.Net'" in said.err) == (3, True)


@pytest.mark.parametrize("root", ["src", "ml/src"])
@pytest.mark.parametrize("line", ["from models.blocks import B", "from models import blocks"])
def test_a_package_below_a_root_of_sources_is_named_with_both_ways_to_import_it(
    hpc, project: Path, root: str, line: str
) -> None:
    models = project / root / "models"
    models.mkdir(parents=True)
    for folder in (models, *models.parents):
        if folder != project and folder.is_relative_to(project):
            (folder / "__init__.py").touch()
    (models / "blocks.py").write_text("B = 1\n")
    (models / "net.py").write_text(f"{line}\n{NETS}")
    within = root.replace("/", ".")
    words = ["submit", "cfg.yaml", "--dry-run", f"model.class_path={within}.models.net.Net"]
    words.append("model.init_args.width=3")
    hint = hpc(*words).err.splitlines()[-1]
    fixed, variable = line.replace("models", f"{within}.models"), f"env.variables.PYTHONPATH={root}"
    assert hint == f"  fix: write {fixed}, since it is in the folder {root}; or {variable}"
    assert hpc(*words, variable).code == 0
    (models / "net.py").write_text(f"{fixed}\n{NETS}")
    assert hpc(*words).code == 0


def test_a_config_of_another_folder_names_the_folder_to_submit_from(hpc, project: Path) -> None:
    inner = project / "my project"
    inner.mkdir()
    (inner / "training.py").write_text(NETS)
    (project / "train.py").touch()  # is near, and not meant
    (inner / "cfg.yaml").write_text(CONFIG.replace("nets.Net", "training.Net"))
    message = f"there is no module 'training' in {project}, and it lies in my project"
    refused(hpc, project, ["submit", "my project/cfg.yaml"], 3, message, "cd 'my project'")


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("trainer: accelerator: cpu\n  max_epochs: 1\n", "put accelerator: cpu on a line of its"),
        ("trainer: accelerator: cpu\n", "own below trainer:, indented"),
        ("slurm: nodes: 1\n", "put nodes: 1 on a line of its own below slurm:"),
        ("model:\n  class_path: a.B\n  init_args: width: 3\n", "below init_args:"),
        ("x: y: 1\n  z: 2\n", "put y: 1 on a line of its own below x:"),
        ("name: part: two\n", 'put it in quotes: "part: two"'),
    ],
)
def test_keys_in_the_line_of_their_section_are_told_from_a_text_with_a_colon(
    tmp_path: Path, written: str, fix: str
) -> None:
    file = tmp_path / "cfg.yaml"
    file.write_text(f"seed: 1\n{written}")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert fix in str(caught.value.hint)


@pytest.mark.parametrize(
    ("loader", "noted"),
    [
        ("DataLoader(self.set, 64, shuffle=True)", "train_dataloader give batches of 64"),
        ("torch.utils.data.DataLoader(self.set, batch_size=64)", "global_batch_size, 8, decides"),
        ("DataLoader(self.set, batch_size=8)", ""),
        ("DataLoader(self.set, batch_size=self.batch_size), DataLoader(self.set)", ""),
    ],
)
def test_a_batch_size_in_the_code_that_is_not_used_is_noted(
    hpc, project: Path, loader: str, noted: str
) -> None:
    text = f"{LOADERS}{NETS}    def train_dataloader(self): return {loader}\n"
    (project / "nets.py").write_text(text)
    said = hpc("submit", "cfg.yaml", "--dry-run")
    assert (said.code, "note: nets.Data" in said.err) == (0, bool(noted))
    assert noted in said.err


@pytest.mark.parametrize("call", ["breakpoint()", "pdb.set_trace()"])
def test_a_breakpoint_is_noted_and_not_refused(hpc, project: Path, call: str) -> None:
    text = NETS.replace("lr: float = 0.1): ...", f"lr: float = 0.1): super().__init__(); {call}")
    text = text.replace("class Abstract", f"{STEPS}class Abstract")
    (project / "nets.py").write_text(f"import pdb; {text}")
    said = hpc("submit", "cfg.yaml", "--dry-run")
    note = f"note: nets.Net has a {call.removesuffix('()')}() (line 4): a job"
    assert (said.code, note in said.err) == (0, True)


LACKING = """\
import torch
import pytorch_lightning as pl
from pytorch_lightning.demos.boring_classes import BoringModel
class Whole(pl.LightningModule):
    def training_step(self, batch): return self.layer(batch).sum()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
class Optimizes:
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
class Says:
    def say(self): print("epoch")
class Same(Whole):
    def training_step(self, batch): return self.layer(batch).sum()
    validation_step = training_step
class NoOptimizer(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch): return self.layer(batch).sum()
class NoStep(Says, pl.LightningModule):
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
class Neither(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
class Mixed(Optimizes, NoOptimizer): ...
class Longer(Whole):
    def __init__(self): super().__init__()
class Boring(BoringModel):
    def forward(self, x): return x
"""


@pytest.mark.parametrize(
    ("name", "more", "lacks"),
    [
        ("NoOptimizer", "", "configure_optimizers"),
        ("NoStep", "", "training_step"),
        ("Neither", "", "training_step"),
        ("Mixed", "", ""),
        ("Longer", "", ""),
        ("Boring", "", ""),
        ("NoStep", "NoStep.training_step = Whole.training_step", ""),
        ("NoStep", "for it in ('a', 'b'): setattr(NoStep, it, print)", ""),
        ("NoStep", "setattr(NoStep, 'forward', print)", "training_step"),
        ("NoStep", "NoStep = type('NoStep', (NoStep,), {'training_step': print})", ""),
    ],
)
def test_a_model_that_cannot_be_trained_is_refused_by_its_text(
    hpc, project: Path, name: str, more: str, lacks: str
) -> None:
    """Also where another class of the module has the method."""
    (project / "more.py").write_text(f"{LACKING}{more}\n")
    words = ["submit", "cfg.yaml", "--dry-run", "model.init_args=null"]
    words.append(f"model.class_path=more.{name}")
    if lacks:
        message = f"more.{name} has no {lacks}, which a training calls"
        refused(hpc, project, words, 3, message, f"fix: write def {lacks}(self")
    else:
        said = hpc(*words)
        assert said.code == 0, said.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import hpc_train\nrun = hpc_train.submit(hpc_train.load('cfg.yaml'))", 2),
        ("from hpc_train import load, submit as go\nprint(go(load('cfg.yaml')).wait())", 2),
        ("import hpc_train as h\ndef main():\n    h.run_here(h.load('cfg.yaml'))\nmain()", 3),
        ("import hpc_train as h\nif __name__ == '__main__':\n    h.submit_sweep(h.load('x'))", 3),
        ("import hpc_train as h, os\nif 'SLURM_JOB_ID' not in os.environ:\n    h.submit(1)", 0),
        ("import pool\npool.submit(print)", 0),
        ("import hpc_train\nwith hpc_train.Session() as session:\n    print(1)", 0),
    ],
)
def test_a_script_that_submits_a_training_itself_is_refused(
    hpc, project: Path, text: str, line: int
) -> None:
    (project / "pool.py").touch()
    (project / "call.py").write_text(f"{text}\n")
    words = ["submit", "call.py", "--dry-run"]
    if line:
        message = f"call.py submits a training itself (line {line}: hpc_train."
        refused(hpc, project, words, 3, message, "python call.py submits it")
    else:
        assert hpc(*words).code == 0
