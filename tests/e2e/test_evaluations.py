"""`hpc-train test`, `validate` and `predict`, as typed after a training, and beside one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from tests.e2e.conftest import DIGITS, ROOT, Shell

CONFIG = """
name: numbers
global_batch_size: 8
model: {class_path: numbers_model.Weighted}
data: {class_path: numbers_model.NumbersData}
trainer:
  accelerator: cpu
  max_epochs: 2
  callbacks:
    - class_path: pytorch_lightning.callbacks.ModelCheckpoint
      init_args: {monitor: sum, mode: max}
loggers: []
preflight: "off"
slurm: {nodes: 1, gpus_per_node: 2}
"""


@pytest.fixture
def numbers(here: Shell) -> Shell:
    """A folder with a config and its classes."""
    (here.folder / "numbers.yaml").write_text(CONFIG)
    shutil.copy(ROOT / "tests" / "training" / "evaluated.py", here.folder / "numbers_model.py")
    return here


def test_a_model_is_tested_and_predicts_in_another_shape(numbers: Shell) -> None:
    numbers.hpc("submit", "--cluster", "local", "numbers.yaml", "--wait")
    best = numbers.hpc("checkpoints", "numbers", "--best").stdout.strip()
    assert Path(best).parent.name == "models"
    said = numbers.hpc("test", "numbers", "--wait")
    assert f"weights    {best} (best: sum 55, step" in said.stdout
    assert "seen 11" in said.stdout
    status = numbers.status("numbers-test")
    assert (status["state"], status["metrics"]["seen"]) == ("completed", 11)
    assert status["reason"] == "the test is complete"
    shown = numbers.hpc("status", "numbers-test").stdout
    assert "decided  stop: the test is complete" in shown
    assert "training" not in shown
    assert re.search(r"^ +steps? ", shown, re.MULTILINE) is None, "an evaluation takes none"
    assert f"  weights    of {best}\n" in shown
    assert (status["weights"], status["attempts"][0]["verb"]) == (best, "test")
    assert not Path(status["run_dir"], "weights").exists(), "their link has served"
    told = json.loads(numbers.hpc("validate", "numbers", "--wait", "--json").stdout)
    assert told["metrics"]["seen"] == 11, "one document, with the metrics"
    made = numbers.hpc("predict", "numbers", "--gpus", 1, "--ckpt", "last", "--json").stdout
    told = json.loads(made)
    assert "last: step 6" in told["weights"]
    assert numbers.ended(told["run"])["state"] == "completed"
    got = torch.load(Path(told["predictions"]) / "predictions.pt", weights_only=True)
    assert got.tolist() == list(range(11))
    assert numbers.status("numbers")["state"] == "completed"


def test_a_complete_run_trains_longer_and_another_begins_with_its_weights(numbers: Shell) -> None:
    run = numbers.submit("--cluster", "local", "--gpus", 1, "numbers.yaml", "trainer.callbacks=[]")
    assert numbers.ended(run["run"])["metrics"]["epoch"] == 2
    numbers.hpc("resume", "numbers", "trainer.max_epochs=3", "--wait")
    longer = numbers.status("numbers")
    assert (longer["state"], longer["metrics"]["step"]) == ("completed", 9)
    assert [attempt["first_step"] for attempt in longer["attempts"]] == [0, 6]
    again = ("numbers.yaml", "init_from=numbers", "name=warm", "trainer.max_steps=1")
    said = numbers.hpc("submit", "--cluster", "local", "--gpus", 1, *again, "--wait")
    assert "the model begins with the weights in" in said.stderr
    warm = Path(numbers.status("warm")["run_dir"])
    weights = json.loads((warm / "plan.json").read_text())["weights"]
    assert str(Path(run["run_dir"], "checkpoints")) in weights
    assert f"  weights    began with {weights}\n" in numbers.hpc("status", "warm").stdout
    assert numbers.status("warm")["weights"] == weights
    assert (longer["weights"], "weights " in numbers.hpc("status", "numbers").stdout) == (None, 0)


def test_what_the_classes_lack_is_told_at_submission(numbers: Shell) -> None:
    run = numbers.submit(
        "--cluster", "local", "--gpus", 1, "numbers.yaml",
        "model.class_path=numbers_model.OnlyTrains", "trainer.callbacks=[]", "trainer.max_steps=1",
    )  # fmt: skip
    numbers.ended(run["run"])
    before = sorted(numbers.folder.glob("runs/*"))
    for verb, method in (("test", "test_step"), ("validate", "validation_step")):
        said = numbers.hpc(verb, "numbers", code=3)
        assert f"error: numbers_model.OnlyTrains has no {method}" in said.stderr
    said = numbers.hpc("predict", "numbers", code=3)
    assert "has no predict_step" in said.stderr
    assert sorted(numbers.folder.glob("runs/*")) == before, "nothing was made"


def test_weights_that_are_not_there_are_told_at_submission(numbers: Shell) -> None:
    said = numbers.hpc("submit", "numbers.yaml", "init_from=nope.ckpt", code=5)
    assert "'nope.ckpt' is neither a checkpoint nor a run" in said.stderr
    assert not list(numbers.folder.glob("runs/*"))


@pytest.mark.slurm
def test_slurm_validates_beside_the_training_which_is_not_touched(site: Shell) -> None:
    endless = ("trainer.max_epochs=100000", "checkpoint.every_n_steps=20")
    run = site.submit("--nodes", 1, "--gpus", 1, DIGITS, *endless)
    site.wait_until(run["run"], lambda status: status["step"] > 60)
    done = site.hpc("validate", run["run"], "--nodes", 2, "--wait", timeout_s=200)
    assert "val_acc" in done.stdout
    validated = site.status("digits-validate")
    assert validated["state"] == "completed"
    assert len(validated["attempts"][0]["nodes"]) == 2
    before = site.status(run["run"])
    assert before["state"] == "running"
    site.hpc("cancel", run["run"])
    stopped = site.ended(run["run"])
    assert stopped["attempts"][0]["steps_lost"] == 0
    assert len(stopped["attempts"]) == 1
