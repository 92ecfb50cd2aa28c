"""A step under hpc-train and a step of Lightning alone, on the same GPU, in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median

from tests.gpu.conftest import ROOT, Bench
from tests.gpu.training import STEPS

PAIRS = 5
AT_MOST = 1.01
BARE = """
import sys
import pytorch_lightning as pl
import torch
from tests.gpu.training import Data, Model
pl.seed_everything(3)
torch.use_deterministic_algorithms(True)
model = Model(width=int(sys.argv[1]), hashed=False)
options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
options |= {"devices": 1, "max_epochs": 4, "deterministic": True}
trainer = pl.Trainer(accelerator=sys.argv[2], **options)
data = Data(batch_size=16, pin_memory=sys.argv[2] == "gpu")
trainer.fit(model, datamodule=data)
"""


def test_a_step_takes_no_longer_than_with_lightning_alone(bench: Bench, on_gpu, tell):
    width, pairs = (100_000, PAIRS) if on_gpu else (200, 1)
    ratios, ours_s = [], []
    for number in range(pairs):
        ours = _ours(bench, width)
        bare = _bare(bench.folder / f"bare-{number}", width, on_gpu)
        ratios.append(ours / bare)
        ours_s.append(ours)
    tell(step=f"{median(ours_s) * 1000:.2f} ms", ratio=f"{median(ratios):.4f}")
    if on_gpu:
        assert median(ratios) <= AT_MOST


def _ours(bench: Bench, width: int) -> float:
    keys = {
        "checkpoint": {"every_n_minutes": 60},
        "trainer": {"max_epochs": 4},
        "data": {"class_path": "tests.gpu.training.Data", "init_args": {"num_workers": 0}},
    }
    trained = bench.completed(bench.submit(1, {"width": width, "hashed": False}, **keys))
    return _median_step_s(trained.directory.path / "steps-0.jsonl")


def _bare(folder: Path, width: int, on_gpu: bool) -> float:
    folder.mkdir()
    env = {
        **os.environ,
        "HPC_TRAIN_RUN_DIR": str(folder),
        "PYTHONPATH": str(ROOT),
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # as with reproducible: true
    }
    argv = [sys.executable, "-c", BARE, str(width), "gpu" if on_gpu else "cpu"]
    done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return _median_step_s(folder / "steps-0.jsonl")


def _median_step_s(file: Path) -> float:
    """Of all but the first epoch."""
    times = [json.loads(line)["time"] for line in file.read_text().splitlines()][STEPS:]
    return median(b - a for a, b in pairwise(times))
