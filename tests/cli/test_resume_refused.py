"""What `hpc-train resume` refuses at once, with what to write instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.test_resume_notes import CONFIG, NETS, submitted


@pytest.fixture
def stopped(hpc, taken, tmp_path: Path) -> RunDir:
    """A run that was cancelled in its seventh epoch, at step 40."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG.replace("max_epochs: 1", "max_epochs: 9"))
    run = submitted(hpc)
    folder = run.checkpoints / "step-000000040"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"step": 40, "epoch": 6, "files": []}))
    return run


@pytest.fixture
def open_run(hpc, taken, tmp_path: Path) -> RunDir:
    """A run whose job is Slurm's to tell of."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    return RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))


def refused(hpc, run: RunDir, words: str, *told: str) -> None:
    before = run.config.read_text(), run.plan.read_text()
    said = hpc(*words.split())
    assert said.code == 3, said
    for text in told:
        assert text in said.err
    assert (run.config.read_text(), run.plan.read_text()) == before


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("max_epoch", "max_epochs"), ("maxepochs", "max_epochs"), ("max_step", "max_steps")],
)
def test_a_misspelled_length_is_told_its_name(hpc, stopped: RunDir, typed: str, meant: str) -> None:
    meant = f"fix: did you mean 'trainer.{meant}'"
    message = f"trainer.{typed} is no argument of Lightning's Trainer"
    refused(hpc, stopped, f"resume x trainer.{typed}=30", message, meant)


def test_what_a_run_keeps_is_not_proposed(hpc, stopped: RunDir) -> None:
    refused(hpc, stopped, "resume x trainer.precisoin=32", "fix: leave it out: a run keeps its tra")


@pytest.mark.parametrize("how", ["", " --dry-run", " --nodes 1"])
def test_an_end_that_lies_behind_the_newest_checkpoint_is_refused(
    hpc, stopped: RunDir, how: str
) -> None:
    told = "trainer.max_epochs is 2, and 6 epochs are done"
    fix = "fix: write trainer.max_epochs=N, with N above 6"
    refused(hpc, stopped, f"resume x trainer.max_epochs=2{how}", told, fix)
    told = "trainer.max_steps is 39, and 40 steps are done"
    fix = "fix: write trainer.max_steps=N, with N above 40"
    refused(hpc, stopped, f"resume x trainer.max_steps=39{how}", told, fix)


@pytest.mark.parametrize("end", ["max_epochs=6", "max_epochs=7", "max_epochs=-1", "max_steps=40"])
def test_an_end_that_is_reached_or_lies_ahead_is_taken(hpc, stopped: RunDir, end: str) -> None:
    assert hpc("resume", "x", f"trainer.{end}", "--dry-run").code == 0


def test_an_end_behind_that_an_earlier_resume_has_left_is_told(hpc, stopped: RunDir) -> None:
    plan = json.loads(stopped.plan.read_text())
    plan["training"]["trainer"]["max_epochs"] = 2
    stopped.plan.write_text(json.dumps(plan))
    stopped.config.write_text(stopped.config.read_text().replace("max_epochs: 9", "max_epochs: 2"))
    fix = "fix: write trainer.max_epochs=N, with N above 6"
    refused(hpc, stopped, "resume x", "and 6 epochs are done", fix)
    refused(hpc, stopped, "resume x --nodes 1", "and 6 epochs are done", fix)
    assert hpc("resume", "x", "trainer.max_epochs=8", "--dry-run").code == 0


def test_another_training_is_told_with_the_command_that_begins_it(hpc, stopped: RunDir) -> None:
    again = "as a run of its own: hpc-train submit cfg.yaml"
    weights = f"; with these weights: init_from={stopped.run_id} behind it"
    refused(
        hpc, stopped, "resume x model.init_args.lr=0.1", f"{again} model.init_args.lr=0.1{weights}"
    )
    both = f"{again} --nodes 2 seed=3 trainer.max_epochs=20{weights}"
    refused(hpc, stopped, "resume x seed=3 trainer.max_epochs=20 --nodes 2", both)


def test_weights_that_another_width_leaves_useless_are_not_proposed_first(
    hpc, stopped: RunDir, tmp_path: Path
) -> None:
    same = "with these weights, where the model keeps its shapes:"
    again = "as a run of its own: hpc-train submit cfg.yaml model.init_args.width=64"
    fix = f"{again}; {same} init_from={stopped.run_id} behind it"
    refused(hpc, stopped, "resume x model.init_args.width=64", fix)
    refused(hpc, stopped, "resume x model.init_args.width=64 model.init_args.lr=0.1", f"; {same}")
    wider = CONFIG.replace("{lr: 0.05}", "{lr: 0.05, width: 64}")
    (tmp_path / "cfg.yaml").write_text(wider.replace("max_epochs: 1", "max_epochs: 9"))
    said = hpc("resume", "x", "--dry-run").err
    told = f"with the new: hpc-train submit cfg.yaml; {same} init_from={stopped.run_id} behind it"
    assert told in said
    faster = CONFIG.replace("0.05", "0.5").replace("max_epochs: 1", "max_epochs: 9")
    (tmp_path / "cfg.yaml").write_text(faster)  # a rate changes no weights
    said = hpc("resume", "x", "--dry-run").err
    assert f"with the new: hpc-train submit cfg.yaml init_from={stopped.run_id}\n" in said


def test_what_cannot_be_typed_again_as_one_command_is_told_in_words(
    hpc, stopped: RunDir, tmp_path: Path
) -> None:
    (tmp_path / "cfg.yaml").unlink()
    words = "resume x model.init_args.lr=0.1"
    refused(hpc, stopped, words, "fix: submit the changed config as a run of its own; with these")


@pytest.mark.parametrize(
    ("state", "first"), [("RUNNING", " first (it saves), then"), ("PENDING", " first, then")]
)
@pytest.mark.parametrize("words", ["slurm.time=40:00", "--time 40:00", "trainer.max_epochs=20"])
def test_changes_of_a_run_that_has_not_ended_are_told_the_way_to_them(
    hpc, slurm, open_run: RunDir, state: str, first: str, words: str
) -> None:
    slurm.says(f"7|{state}|None|N/A")
    name = open_run.run_id
    said = hpc("resume", "x", *words.split())
    assert said.code == 1
    assert f"is {state.lower()} as job 7, and keeps until its end what it was sub" in said.err
    assert f"fix: hpc-train cancel {name}{first} the same command again" in said.err
    assert f"it needs nothing: hpc-train status {name} shows it" in hpc("resume", "x").err


def test_what_a_run_is_refused_is_no_reason_to_cancel_it(hpc, slurm, open_run: RunDir) -> None:
    slurm.says("7|RUNNING|None|N/A")
    refused(hpc, open_run, "resume x model.init_args.lr=0.1", "as a run of its own: hpc-train sub")
    assert "cancel" not in hpc("resume", "x", "slurm.tmie=40:00").err
