"""A test of a run where its training is meant: which word is told, and that it works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import hpc_train
from hpc_train import api
from hpc_train.errors import ConfigError
from hpc_train.python_notes import HpcTrainNote
from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import CONFIG, NETS, ended, evaluation, project, refused, run, saved

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
    other = NETS.replace("class Net(", "class Quagga(").replace("class Data(", "class Store(")
    (project / "nets.py").write_text(other)  # names that are not near
    typed = f"{typed.rpartition(' ')[0]} model.class_path=nets.Quagga data.class_path=nets.Store"
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


def with_arguments(hpc, project: Path, arguments: str) -> RunDir:
    """A run whose model has these init_args, which has saved a step."""
    takes = "lr: float = 0.1, width: int = 2"
    (project / "nets.py").write_text(NETS.replace("lr: float = 0.1", takes))
    given = f"{{class_path: nets.Net, init_args: {{{arguments}}}}}"
    (project / "cfg.yaml").write_text(CONFIG.replace("{class_path: nets.Net}", given))
    made = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    saved(made, 12)
    return ended(made, "cancelled")


def model_of(evaluated: str) -> object:
    text = RunDir(Path(json.loads(evaluated)["run_dir"])).config.read_text()
    return yaml.safe_load(text)["model"].get("init_args")


def test_an_evaluation_with_another_class_keeps_the_arguments_of_the_run(
    hpc, project: Path
) -> None:
    """It was tested with the defaults of the class, and its metrics told as those of the run."""
    with_arguments(hpc, project, "lr: 0.3, width: 5")
    code = (project / "nets.py").read_text()
    (project / "moved.py").write_text(code)
    (project / "less.py").write_text(code.replace(", width: int = 2", ""))
    (project / "open.py").write_text(code.replace("lr: float = 0.1, width: int = 2", "**rest"))
    keeps = "note: the class that is typed keeps the run's arguments: "
    for module in ("moved", "open"):
        said = hpc("test", "x", f"model.class_path={module}.Net", "--json")
        assert f"{keeps}model.init_args.lr=0.3 model.init_args.width=5\n" in said.err
        assert "left out" not in said.err
        assert model_of(said.out) == {"lr": 0.3, "width": 5}
    said = hpc("test", "x", "model.class_path=moved.Net", "model.init_args.width=7", "--json")
    assert f"{keeps}model.init_args.lr=0.3\n" in said.err
    assert model_of(said.out) == {"lr": 0.3, "width": 7}
    said = hpc("test", "x", "model.class_path=less.Net", "--json")
    assert f"{keeps}model.init_args.lr=0.3\n" in said.err
    assert "left out: model.init_args.width; the new one takes no such argument\n" in said.err
    assert model_of(said.out) == {"lr": 0.3}


@pytest.mark.parametrize("words", [("0", "1"), ("1", "0")])
def test_arguments_that_are_typed_as_none_are_none(
    hpc, project: Path, words: tuple[str, str]
) -> None:
    with_arguments(hpc, project, "lr: 0.3")
    (project / "moved.py").write_text((project / "nets.py").read_text())
    typed = ["model.class_path=moved.Net", "model.init_args={}"]
    said = hpc("test", "x", *(typed[int(it)] for it in words), "--json")
    assert "keeps the run's" not in said.err
    assert not model_of(said.out)


def test_an_evaluation_of_python_is_warned_of_what_it_keeps(hpc, project: Path) -> None:
    made = with_arguments(hpc, project, "lr: 0.3")
    (project / "moved.py").write_text((project / "nets.py").read_text())
    with pytest.warns(HpcTrainNote, match="keeps the run's arguments: model.init_args.lr=0.3"):
        api.Run(made).evaluate("test", "model.class_path=moved.Net", cluster="slurm")


def test_classes_that_have_moved_are_told_where_they_are(hpc, project: Path, run: RunDir) -> None:
    """A near name of a module was told, or nothing, and one class of several."""
    (project / "nets.py").rename(project / "net.py")
    moved = "model.class_path=net.Net data.class_path=net.Data"
    typed = f"hpc-train test {run.run_id} {moved}"
    fix = refused(hpc, f"test {run.run_id}", "there is no module 'nets'", f", or {typed}")
    assert "nets.py (deleted)" in fix
    assert hpc(*typed.split()[1:], "--json").code == 0
    (project / "sub").mkdir()
    (project / "net.py").rename(project / "sub" / "others.py")
    moved = "model.class_path=sub.others.Net data.class_path=sub.others.Data"
    refused(hpc, f"test {run.run_id}", "there is no module 'nets'", moved)
