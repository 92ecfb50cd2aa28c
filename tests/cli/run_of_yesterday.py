"""A run that is there, and what a refusal of a command about it is."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir

NETS = """\
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def __init__(self, lr: float = 0.1): ...
    def training_step(self, batch): ...
    def configure_optimizers(self): ...
    def test_step(self, batch): ...
class Data(LightningDataModule):
    def train_dataloader(self): ...
    def test_dataloader(self): ...
"""

CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net}
data: {class_path: nets.Data}
trainer: {accelerator: cpu, max_epochs: 1}
slurm: {nodes: 2, gpus_per_node: 2, time: "0:10:00"}
"""


@pytest.fixture
def project(hpc, taken, tmp_path: Path) -> Path:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    return tmp_path


def refused(hpc, words: str, message: str, fix: str) -> str:
    """The fix that is said of these words."""
    said = hpc(*shlex.split(words))
    assert said.code, said
    error, hint = said.err.splitlines()
    assert message in error
    assert fix in hint
    return hint


def ended(run: RunDir, state: str) -> RunDir:
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, {"state": state}))
    if state == "completed":
        run.done.touch()
    return run


def saved(run: RunDir, step: int) -> Path:
    folder = run.checkpoints / f"step-{step:09d}"
    folder.mkdir()
    manifest = {"schema_version": 1, "step": step, "epoch": 1, "samples": None, "world_size": 4}
    manifest |= {"accumulate": 1, "config_hash": "", "attempt": 0, "time": 0.0}
    (folder / "manifest.json").write_text(json.dumps({**manifest, "versions": {}, "files": []}))
    (folder / "model.ckpt").write_bytes(b"\x80\x02")
    return folder


@pytest.fixture
def run(hpc, project: Path) -> RunDir:
    """A run that was cancelled after 12 steps, which it has saved."""
    said = hpc("submit", "cfg.yaml", "--json")
    assert said.code == 0, said
    made = RunDir(Path(json.loads(said.out)["run_dir"]))
    saved(made, 12)
    return ended(made, "cancelled")


@pytest.fixture
def sweep(hpc, slurm, project: Path) -> str:
    """The id of a sweep of two points, both of which have a run."""
    slurm.has("sbatch", "echo 7")
    slurm.has("scontrol", "printf 'MaxArraySize            = 9\\nMaxJobCount = 10000\\n'")
    said = hpc("submit", "cfg.yaml", "name=sw", "--sweep", "model.init_args.lr=0.1,0.2", "--json")
    assert said.code == 0, said
    name: str = json.loads(said.out)["sweep"]
    for number in (0, 1):
        assert hpc("status", f"{name}-{number}").code == 0
    return name


@pytest.fixture
def evaluation(hpc, run: RunDir) -> RunDir:
    """A test of its model, which is complete."""
    said = hpc("test", "x", "--json")
    assert said.code == 0, said
    return ended(RunDir(Path(json.loads(said.out)["run_dir"])), "completed")
