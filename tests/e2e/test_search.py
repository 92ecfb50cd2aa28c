"""The search of docs/sweeps.md, as it stands there; Optuna is a stand-in."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.e2e.conftest import ROOT, Shell

PAGE = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
STAND_IN = ROOT / "tests" / "e2e" / "stand_in"
NETS = """\
from tests.faults.tiny import Tiny, TinyData


class Net(Tiny):
    def __init__(self, lr: float) -> None:
        super().__init__(step_s=0)
        self.lr = lr

    def training_step(self, batch, index):
        if self.lr > 0.05:
            raise FloatingPointError("diverged")
        self.log("val_acc", self.lr)
        return super().training_step(batch, index)
"""
CONFIG = """\
name: search
global_batch_size: 2
model: {class_path: nets.Net, init_args: {lr: 1.0}}
data: {class_path: tests.faults.tiny.TinyData}
trainer: {accelerator: cpu, max_steps: 2}
loggers: []
preflight: "off"
slurm: {gpus_per_node: 1}
"""


def test_each_trial_of_a_search_is_a_run_also_beside_others(here: Shell) -> None:
    (text,) = re.findall(r"```python\n(import hpc_train\nimport optuna\n.*?)```", PAGE, re.S)
    (here.folder / "search.py").write_text(text)
    (here.folder / "nets.py").write_text(NETS)
    (here.folder / "cfg.yaml").write_text(CONFIG)
    here.environment["PYTHONPATH"] = f"{STAND_IN}:{ROOT}"
    here.run("env", "-u", "SLURM_CONF", sys.executable, "search.py")  # no Slurm is configured
    good, bad = json.loads((here.folder / "study.json").read_text())
    assert (good["lr"], good["value"]) == (1e-5, pytest.approx(1e-5))
    status = here.status(good["run"])
    assert (status["state"], status["metrics"]["val_acc"]) == ("completed", good["value"])
    assert here.status(bad["run"])["state"] == "failed"
    assert "diverged" in bad["pruned"]
