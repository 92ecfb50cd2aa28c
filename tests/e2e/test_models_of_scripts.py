"""What the ModelCheckpoints of a script's own Trainer save is listed, and stays where it is."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.e2e.conftest import Shell

SCRIPT = """\
import sys
import time
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch, index):
        time.sleep(float(sys.argv[1]))
        return self.layer(batch).square().mean()
    def validation_step(self, batch, index):
        self.log("score", float(self.current_epoch != 1))
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(torch.ones(64, 2), batch_size=4)
    keeps = ModelCheckpoint(monitor="score", save_top_k=2, save_last=True)
    pl.Trainer(max_epochs=4, callbacks=[keeps], logger=False).fit(Net(), loader, loader)
"""
PLAIN = """\
import torch
layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    layer(torch.ones(4, 2)).mean().backward()
    optimizer.step()
"""
ON_CPUS = ("script.accelerator=cpu", "preflight=off")


def test_they_are_listed_with_the_metric_also_over_two_attempts(here: Shell) -> None:
    """`checkpoints --best` said that none was saved, and proposed a key that scripts have not."""
    (here.folder / "train.py").write_text(SCRIPT)
    words = ("train.py", "--gpus", 2, *ON_CPUS)
    run = here.submit("--cluster", "local", *words, "--", 0.5)["run"]
    here.wait_until(run, lambda status: status["step"] > 5)
    here.hpc("cancel", run)
    here.ended(run)
    here.hpc("resume", run)
    assert here.ended(run)["state"] == "completed"
    best = Path(here.hpc("checkpoints", run, "--best").stdout.strip())
    assert best == here.folder / "checkpoints" / "epoch=1-step=16.ckpt"
    assert torch.load(best, weights_only=False)["epoch"] == 1
    found = json.loads(here.hpc("checkpoints", run, "--json").stdout)["models"]
    told = {(it["step"], it["monitor"], it["score"], it["last"]) for it in found}
    assert (16, "score", 0.0, False) in told
    assert sum(last for *_, last in told) == 1
    assert {Path(it["path"]) for it in found} == {*best.parent.glob("*.ckpt")}


def test_a_script_without_a_trainer_is_told_so(here: Shell) -> None:
    (here.folder / "plain.py").write_text(PLAIN)
    here.hpc("run", "plain.py", *ON_CPUS)
    told = here.hpc("checkpoints", "plain").stderr
    assert (
        "no checkpoints: of a script without a Trainer of Lightning's nothing but its own" in told
    )
    assert "under trainer.callbacks" not in told
    refused = here.hpc("checkpoints", "plain", "--best", code=1).stderr
    assert "among the callbacks of its Trainer" in refused
