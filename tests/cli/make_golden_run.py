"""Makes the run that all later code has to read: `python -m tests.cli.make_golden_run`.

Run it once for each version of hpc-train that is released, and commit what it leaves in
`golden/VERSION`: a project, and a run of it that was cancelled and resumed and cancelled. A folder
that is there stays as it is: it stands for what users have on their disks. Names of this machine
are replaced in it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

import hpc_train

GOLDEN = Path(__file__).parent / "golden"
PROJECT, PYTHON = "/home/me/project", "/home/me/venv"
RUN = "golden/20261122-080000-beef"
LEFT_OUT = ("tensorboard", "__pycache__", "supervisor.lock", "*.pkl", "stop")
CONFIG = """\
name: golden
global_batch_size: 32
model:
  class_path: nets.Net
  init_args: {lr: 0.05}
data:
  class_path: nets.Data
trainer:
  accelerator: cpu
  max_epochs: 4
checkpoint: {every_n_steps: 5, keep_last: 2}
slurm: {nodes: 1, gpus_per_node: 2, time: "0:10:00"}
env:
  variables: {MY_SETTING: "one, two"}
"""
NETS = """\
import time

import torch
from pytorch_lightning import LightningDataModule, LightningModule
from torch.utils.data import DataLoader, TensorDataset


class Net(LightningModule):
    def __init__(self, lr: float = 0.1):
        super().__init__()
        self.lr, self.layer = lr, torch.nn.Linear(8, 1)

    def training_step(self, batch, _):
        time.sleep(0.7)  # so that there is time to cancel it
        loss = (self.layer(batch[0]) - batch[1]).square().mean()
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.lr)


class Data(LightningDataModule):
    def __init__(self, batch_size: int):
        super().__init__()
        self.batch_size = batch_size

    def train_dataloader(self):
        x = torch.randn(256, 8, generator=torch.Generator().manual_seed(0))
        return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), self.batch_size, shuffle=True)
"""


def main() -> None:
    target = GOLDEN / hpc_train.__version__
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        (project / "first.yaml").write_text(CONFIG)
        (project / "nets.py").write_text(NETS)
        run = stopped_run(project)
        ignored = shutil.ignore_patterns(*LEFT_OUT)
        (target / "runs" / RUN).parent.mkdir(parents=True)
        shutil.copytree(run, target / "runs" / RUN, ignore=ignored, symlinks=True)
        for name in ("first.yaml", "nets.py"):
            shutil.copy(project / name, target)
        libraries = str(Path(click.__file__).parents[1])
        written = {run.name: Path(RUN).name, str(project): PROJECT, sys.prefix: PYTHON}
        here = {libraries: f"{PYTHON}/lib", platform.node(): "node1", platform.release(): "6.1.0"}
        rename(target, written | here)


def stopped_run(project: Path) -> Path:
    """A run that was cancelled, went on, and was cancelled again."""
    state = {"XDG_STATE_HOME": str(project.parent / "state")}

    def hpc(*words: str) -> dict[str, object]:
        argv = [sys.executable, "-m", "hpc_train.cli", *words, "--json"]
        done = subprocess.run(
            argv, cwd=project, env={**os.environ, **state}, stdout=subprocess.PIPE, check=True
        )
        return dict(json.loads(done.stdout))

    def until(state: str, step: int) -> None:
        while (now := hpc("status", "golden"))["state"] != state or int(
            str(now["step"] or 0)
        ) < step:
            assert now["state"] in ("pending", "running", state), now
            time.sleep(0.2)

    hpc("submit", "--cluster", "local", "first.yaml")
    for step in (6, 12):
        until("running", step)
        hpc("cancel", "golden")
        until("cancelled", step)
        if step == 6:
            hpc("resume", "golden")
    return Path(str(hpc("status", "golden")["run_dir"]))


def rename(folder: Path, words: dict[str, str]) -> None:
    """Replace names of this machine in texts, and in names of files."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and not path.is_symlink() and path.suffix not in (".ckpt", ".pt"):
            text = path.read_text(encoding="utf-8")
            for old, new in words.items():
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
        for old, new in words.items():
            if old in path.name:
                path.rename(path.with_name(path.name.replace(old, new)))
                break


if __name__ == "__main__":
    main()
