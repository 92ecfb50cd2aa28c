"""`hpc-train bench` for real: on Slurm over 1, 2 and 3 nodes, and here over 1 and 2 processes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plan.bench_plan import WARM_UP, last_step
from tests.e2e.conftest import Shell

# Slow where the folder holds a file `slow`, and broken on two ranks where it holds `broken`.
NETS = """
import time
from pathlib import Path
import torch
from pytorch_lightning import LightningDataModule, LightningModule
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

class Net(LightningModule):
    def __init__(self, step_s=0.03, sum_s=0.0):
        super().__init__()
        self.layer, self.step_s, self.sum_s = torch.nn.Linear(8, 1), step_s, sum_s

    def on_train_start(self):
        if self.sum_s:  # as over a slow network
            self.trainer.strategy.model.register_comm_hook(None, self.slowly)

    def slowly(self, _, bucket):
        time.sleep(self.sum_s)
        return allreduce_hook(None, bucket)

    def training_step(self, batch, _):
        if self.trainer.world_size == 2 and Path("broken").exists():
            raise ValueError("two is too many")
        time.sleep(self.step_s * (2 if Path("slow").exists() else 1))
        loss = self.layer(batch).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.001)

class Data(LightningDataModule):
    def __init__(self, batch_size, wait_s=0.0):
        super().__init__()
        self.batch_size, self.wait_s = batch_size, wait_s

    def train_dataloader(self):
        def collate(samples):
            time.sleep(self.wait_s)
            return torch.stack(samples)

        data = torch.randn(600, 8)
        return torch.utils.data.DataLoader(
            data, self.batch_size, num_workers=0, collate_fn=collate
        )
"""
CONFIG = """
name: net
global_batch_size: 6
model: {class_path: nets.Net}
data: {class_path: nets.Data}
trainer: {accelerator: cpu, max_steps: 3000, max_epochs: -1}
loggers: [csv, tensorboard]
slurm: {nodes: 3, gpus_per_node: 1, time: "1:00:00"}
preflight: {mode: "off", monitor_interval_s: 0}
"""
MEASURED = 8  # steps
# A tenth more is told: what else a busy machine does to a step is less than that of these.
LONG_STEPS = "model.init_args.step_s=0.8"


def project(shell: Shell) -> Shell:
    (shell.folder / "nets.py").write_text(NETS)
    (shell.folder / "net.yaml").write_text(CONFIG)
    return shell


def bench(shell: Shell, *words: object, **options: Any) -> dict[str, Any]:
    argv = ("bench", "net.yaml", "--json", "--steps", MEASURED, *words)
    return dict(json.loads(shell.hpc(*argv, **options).stdout))


def leaves_no_model(told: dict[str, Any], number: int) -> bool:
    run = Path(f"{told['bench_dir']}-{number}")
    return not list(run.rglob("*.ckpt")) and not list(run.glob("checkpoints/*"))


@pytest.mark.slurm
@pytest.mark.timeout(1200)
def test_shapes_are_measured_on_slurm_and_a_slower_run_says_so_while_it_runs(site: Shell) -> None:
    shell = project(site)
    (shell.folder / "broken").touch()
    told = bench(shell, "--nodes", "1,2,3", "--html", "bench.html", LONG_STEPS)
    (shell.folder / "broken").unlink()
    one, two, three = told["rows"]
    assert [row["state"] for row in told["rows"]] == ["completed", "failed", "completed"]
    assert "two is too many" in two["why"]
    for row in (one, three):
        assert 0.8 < row["measured"]["step_s"] < 2
        assert row["measured"]["steps"] == MEASURED
        assert sum(row["shares"].values()) == pytest.approx(1)
        assert row["samples_per_s"] == pytest.approx(6 * row["steps_per_s"])
    assert (one["efficiency"], one["measured"]["comm_s"]) == (1, None)
    assert three["measured"]["comm_s"] >= 0
    assert told["chosen"] in (0, 2)
    assert all(leaves_no_model(told, number) for number in range(3))
    step = shell.status(f"{told['bench']}-0")["step"]
    assert step == last_step(MEASURED)
    page = (shell.folder / "bench.html").read_text()
    assert "two is too many" in page
    again = shell.hpc("bench", "net", "--show").stdout
    assert again.splitlines()[2].startswith("1 x 1")
    assert "recommended" in again

    # The training itself, as fast as its baseline, and then slower.
    run = shell.submit("net.yaml", LONG_STEPS)
    enough = 2 * WARM_UP + 40
    status = shell.wait_until(run["run"], lambda status: status["step"] >= enough)
    assert status["slow"] is None
    (shell.folder / "slow").touch()
    status = shell.wait_until(run["run"], lambda status: status["slow"] is not None)
    assert "slower than its baseline (bench net-bench: " in status["slow"]
    assert status["slow"].endswith("at 3 x 1)")
    assert " % slower than its baseline (bench" in shell.hpc("status", run["run"]).stdout
    shell.hpc("cancel", run["run"])
    shell.ended(run["run"])


@pytest.mark.slurm
def test_a_bench_first_is_the_baseline_and_lets_the_run_begin(site: Shell) -> None:
    shell = project(site)
    run = shell.submit("net.yaml", "--nodes", 2, "--bench-first", "trainer.max_steps=3")
    assert shell.status(run["run"])["state"] == "pending"
    ended = shell.ended(run["run"])
    assert ended["state"] == "completed"
    (row,) = json.loads(shell.hpc("bench", "net", "--show", "--json").stdout)["rows"]
    assert (row["shape"], row["state"]) == ("2 x 1", "completed")
    benched = shell.status(f"{json.loads(shell.hpc('list', '--json').stdout)['runs'][1]['run']}-0")
    assert benched["attempts"][0]["ended"] <= ended["attempts"][0]["started"]


def test_shapes_are_processes_one_after_another_without_slurm(here: Shell) -> None:
    shell = project(here)
    words = ("--cluster", "local", "--nodes", 1, "--gpus", "1,2", "--vary", "micro_batch_size=1,3")
    told = bench(shell, *words, "model.init_args.step_s=0.15")
    assert [row["shape"] for row in told["rows"]] == ["1 x 1", "1 x 1", "1 x 2", "1 x 2"]
    assert {row["state"] for row in told["rows"]} == {"completed"}
    times = [row["measured"]["step_s"] for row in told["rows"]]
    assert times[0] > 1.5 * times[1], "six micro batches of 1 take longer than two of 3"
    assert all(leaves_no_model(told, number) for number in range(4))
    runs = [shell.status(f"{told['bench']}-{number}") for number in range(4)]
    spans = [(it["attempts"][0]["started"], it["attempts"][0]["ended"]) for it in runs]
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans)), "never two at once"


def test_ctrl_c_ends_the_shape_at_hand_and_those_that_wait_here(here: Shell) -> None:
    shell = project(here)
    words = ("bench", "net.yaml", "--cluster", "local", "--nodes", "1", "--gpus", "1,2")
    process = subprocess.Popen(
        [sys.executable, "-m", "hpc_train.cli", *words, "--steps", "2000"],
        cwd=shell.folder,
        env={**os.environ, **shell.environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    name = Path(process.stderr.readline().split()[1]).name
    shell.wait_until(f"{name}-0", lambda status: status["step"] > 0)
    waiting = shell.status(f"{name}-1")
    assert (waiting["state"], waiting["job_id"]) == ("pending", "")
    process.send_signal(2)
    _, said = process.communicate(timeout=150)
    assert process.returncode == 130
    assert "what had not ended is ended" in said
    assert shell.ended(f"{name}-0")["state"] == "cancelled"
    assert shell.status(f"{name}-1")["state"] == "cancelled"


def test_the_time_is_put_where_it_goes(here: Shell) -> None:
    shell = project(here)
    both = ("--vary", "data.init_args.wait_s=0,0.8", "--vary", "model.init_args.sum_s=0,0.8")
    told = bench(shell, "--cluster", "local", "--nodes", 1, "--gpus", 2, *both)
    quick, slow, waits, _ = (row["shares"] for row in told["rows"])
    steps_per_s = [row["steps_per_s"] for row in told["rows"]]
    summing_s = [
        part["communication"] / rate
        for part, rate in zip((quick, slow), steps_per_s[:2], strict=True)
    ]
    assert summing_s[1] > 2 * summing_s[0], "0.8 s for each sum of gradients"
    assert slow["communication"] > 0.5
    assert waits["data"] > 0.6 > quick["data"] + 0.1, "0.8 s for each batch"
    assert told["rows"][0]["state"] == told["rows"][3]["state"] == "completed"


SCRIPT = """
import sys, time, torch
import pytorch_lightning as pl
from nets import Data, Net
pl.Trainer(accelerator="cpu", max_steps=int(sys.argv[1]), max_epochs=-1, logger=False,
           enable_checkpointing=False, enable_progress_bar=False).fit(Net(), Data(6))
"""


def test_of_a_script_the_rate_is_measured_and_one_line_says_so(here: Shell) -> None:
    shell = project(here)
    (shell.folder / "train.py").write_text(SCRIPT)
    words = ("bench", "train.py", "--cluster", "local", "--gpus", "1", "script.accelerator=cpu")
    done = shell.hpc(*words, "preflight=off", "--json", "--", "200")
    (row,) = json.loads(done.stdout)["rows"]
    assert "its own arguments end it" in done.stderr
    assert 5 < row["steps_per_s"] < 34
    assert (row["samples_per_s"], row["shares"]) == (None, {})
