"""A test of a run where its training is meant: which word is told, and that it works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import ended, evaluation, project, refused, run, saved

__all__ = ["evaluation", "project", "run"]


def test_of_a_test_and_a_training_the_training_is_tested(
    hpc, run: RunDir, evaluation: RunDir
) -> None:
    fix = "fix: hpc-train predict x takes the newest training here"
    assert fix in hpc("predict").err
    assert "fix: hpc-train checkpoints x-test takes the newest run here" in hpc("checkpoints").err
    for word in ("x-test", evaluation.run_id, "latest"):
        message = f"x-test ({evaluation.run_id}) is a test of x"
        refused(hpc, f"test {word}", message, "hpc-train test x")
        refused(hpc, f"predict {word}", message, "hpc-train predict x")
    assert hpc("test", "x", "--json").code == 0


@pytest.mark.parametrize(
    ("verb", "what"), [("validate", "a validation"), ("predict", "a prediction")]
)
def test_an_evaluation_names_the_training_whose_model_it_takes(
    hpc, run: RunDir, evaluation: RunDir, verb: str, what: str
) -> None:
    plan = json.loads(evaluation.plan.read_text())
    evaluation.plan.write_text(json.dumps({**plan, "verb": verb, "name": f"x-{verb}"}))
    refused(hpc, f"test {evaluation.run_id}", f"is {what} of x", "hpc-train test x")
    newer = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    saved(newer, 3)
    refused(hpc, f"test {evaluation.run_id}", f"is {what} of x", f"hpc-train test {run.run_id}")
    evaluation.plan.write_text(json.dumps({**plan, "verb": verb, "name": "gone"}))
    refused(hpc, f"test {evaluation.run_id}", f"{what}, and no training", "name the training")


def test_a_test_is_not_made_longer(hpc, run: RunDir, evaluation: RunDir) -> None:
    """It was told to train longer, and then was tested again."""
    message = f"x-test ({evaluation.run_id}) tests a model, and trains none"
    longer = "to train longer: hpc-train resume x trainer.max_epochs=N"
    refused(hpc, "resume x-test", message, f"anew: hpc-train test x; {longer}")
    for words in ("trainer.max_epochs=5", "trainer.max_steps=9 --dry-run"):
        refused(hpc, f"resume x-test {words}", message, longer)
    assert hpc("resume", "x", "trainer.max_epochs=5", "--dry-run").code == 0
    ended(evaluation, "cancelled")
    evaluation.done.unlink()
    said = hpc("resume", "x-test", "--dry-run")
    assert (said.code, "begins again at step 0" in said.err) == (0, False)
