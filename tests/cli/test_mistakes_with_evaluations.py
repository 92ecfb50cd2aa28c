"""A test of a run where its training is meant: which word is told, and that it works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hpc_train
from hpc_train import api
from hpc_train.errors import ConfigError
from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import NETS, ended, evaluation, project, refused, run, saved

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


def test_of_other_code_the_new_name_of_the_class_is_typed(
    hpc, project: Path, run: RunDir, evaluation: RunDir
) -> None:
    assert "the code is not" not in hpc("test", "x", "--json").err
    (project / "nets.py").write_text(f"{NETS}# longer\n")
    assert "note: the code is not that of the run: nets.py\n" in hpc("test", "x").err
    (project / "nets.py").write_text(NETS.replace("class Net(", "class MyNet("))
    back = f"nets.py; take that back (hpc-train diff {run.run_id} shows it)"
    typed = f"hpc-train test {run.run_id} model.class_path=nets.MyNet"
    refused(hpc, f"test {run.run_id}", "nets has no class 'Net'", f"{back}, or {typed}")
    assert hpc(*typed.split()[1:], "--json").code == 0
    (project / "nets.py").write_text(f"{NETS}print((1)\n")
    refused(hpc, "test x", "'(' was never closed", "fix: the file cannot be imported: ")


def test_a_test_is_not_made_longer(hpc, run: RunDir, evaluation: RunDir) -> None:
    """It was told to train longer, and then was tested again."""
    message = f"x-test ({evaluation.run_id}) tests a model, and trains none"
    longer = "to train longer: hpc-train resume x trainer.max_epochs=N"
    refused(hpc, "resume x-test", message, f"anew: hpc-train test x; {longer}")
    for words in ("trainer.max_epochs=5", "trainer.max_steps=9 --dry-run"):
        refused(hpc, f"resume x-test {words}", message, longer)
    assert hpc("resume", "x", "trainer.max_epochs=5", "--dry-run").code == 0
    newer = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    saved(newer, 3)  # which the name means from now on
    longer = longer.replace("resume x ", f"resume {run.run_id} ")
    refused(hpc, "resume x-test", message, f"anew: hpc-train test {run.run_id}; {longer}")
    ended(evaluation, "cancelled")
    evaluation.done.unlink()
    said = hpc("resume", "x-test", "--dry-run")
    assert (said.code, "begins again at step 0" in said.err) == (0, False)


@pytest.mark.parametrize("verb", ["predict", "test", "validate"])
def test_a_file_of_data_is_told_as_an_argument_of_the_data_class(
    hpc, project: Path, run: RunDir, verb: str
) -> None:
    """`data=new.csv` was told as data: {class_path: new.csv}."""
    fix = "data.init_args.NAME=new.csv"
    refused(hpc, f"{verb} x new.csv", "'new.csv' is no key=value", fix)
    assert "class_path: new.csv" not in refused(hpc, f"{verb} x data=new.csv", "data is", fix)
    (project / "plain").touch()
    refused(hpc, f"{verb} x plain", "'plain' is no key=value", "data.init_args.NAME=plain")


def test_a_run_where_python_loads_a_config_is_told_with_what_finds_its_model(run: RunDir) -> None:
    """load("x") was told with did you mean 'cfg.yaml'?, which has no model either."""
    with pytest.raises(ConfigError) as caught:
        api.load("x")
    assert caught.value.message == "x is a run, and load() reads a config"
    assert f"hpc_train.Run.find({run.run_id!r}).best_model()" in caught.value.hint
    with pytest.raises(AttributeError, match=r"CLASS.load_from_checkpoint\(hpc_train.Run.find"):
        api.load("cfg.yaml").eval()  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="there is no such file"):
        api.load("y")


@pytest.mark.parametrize("state", ["failed", "completed", "cancelled", "lost"])
def test_a_state_in_the_place_of_a_run_is_told_so(hpc, run: RunDir, state: str) -> None:
    shown = f"`hpc-train list --state {state}` shows its runs, `hpc-train rm --state {state}`"
    for words in (f"rm {state}", f"status {state}", f"resume {state}"):
        refused(hpc, words, f"no run answers to '{state}'", f"{state} is a state: {shown}")


def test_a_resume_from_the_best_checkpoint_is_told_as_a_run_of_its_own(hpc, run: RunDir) -> None:
    fix = "hpc-train submit CFG init_from=$(hpc-train checkpoints x --best)"
    refused(hpc, "resume x --ckpt best", "No such option '--ckpt'", fix)


def test_names_of_a_run_and_a_model_that_others_have_are_told_in_python() -> None:
    with pytest.raises(AttributeError, match=r"write hpc_train.Run.find\('latest'\)"):
        _ = hpc_train.load_run  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"write CLASS.load_from_checkpoint\(hpc_train.Run"):
        _ = hpc_train.load_model  # type: ignore[attr-defined]
