"""`hpc-train resume` after the config's file was edited: a run keeps its own, and this is told."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir

NETS = """\
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def __init__(self, lr: float = 0.1, width: int = 3): ...
class Data(LightningDataModule): ...
"""
CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net, init_args: {lr: 0.05}}
data: {class_path: nets.Data}
trainer: {accelerator: cpu, max_epochs: 1}
slurm: {nodes: 1, gpus_per_node: 2, time: "0:20:00"}
"""


def ended(run: RunDir) -> RunDir:
    done = {"state": "cancelled", "reason": "somebody cancelled it"}
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, done))
    return run


def submitted(hpc, *words: str) -> RunDir:
    said = hpc("submit", "cfg.yaml", *words, "--json")
    return ended(RunDir(Path(json.loads(said.out)["run_dir"])))


@pytest.fixture
def stopped(hpc, taken, tmp_path: Path) -> RunDir:
    """A run that was cancelled; its width, time and nodes were typed."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    return submitted(hpc, "model.init_args.width=4", "slurm.time=0:30:00", "--nodes", "1")


def changed(said) -> list[str]:
    return [line for line in said.err.splitlines() if "since the submission" in line]


HOW = ([], ["--dry-run"], ["--dry-run", "--json"], ["--json"], ["--nodes", 2])


@pytest.mark.parametrize("how", HOW)
def test_another_model_in_the_file_is_told_with_what_to_type(
    hpc, stopped: RunDir, tmp_path: Path, how: list[str]
) -> None:
    (tmp_path / "cfg.yaml").write_text(CONFIG.replace("0.05", "0.5"))
    said = hpc("resume", "x", *how)
    assert said.code == 0, said
    told = "model.init_args.lr 0.05 -> 0.5; a run keeps its own config; with the new: "
    told = f"note: cfg.yaml has changed since the submission: {told}hpc-train submit cfg.yaml"
    assert changed(said) == [told]
    if "--json" in how:
        json.loads(said.out)


def test_an_unchanged_file_under_what_was_typed_says_nothing(hpc, stopped: RunDir) -> None:
    assert changed(hpc("resume", "x", "--dry-run")) == []
    assert changed(hpc("resume", "x", "--dry-run", "slurm.time=0:40:00")) == []


def test_what_may_change_in_a_run_is_offered_to_the_run(
    hpc, stopped: RunDir, tmp_path: Path
) -> None:
    (tmp_path / "cfg.yaml").write_text(
        CONFIG.replace("max_epochs: 1", "max_epochs: 3") + "requeue: {enabled: false}\n"
    )
    [told] = changed(hpc("resume", "x", "--dry-run"))
    assert "trainer.max_epochs 1 -> 3, requeue.enabled True -> False" in told
    typed = re.search(r"with the new: hpc-train (resume .*)", told)
    assert typed
    again = hpc(*typed[1].split(), "--dry-run")
    assert (again.code, changed(again)) == (0, [])
    plan = json.loads(hpc(*typed[1].split(), "--dry-run", "--json").out)["plan"]
    assert (plan["training"]["trainer"]["max_epochs"], plan["requeue"]["enabled"]) == (3, False)


def test_what_an_earlier_resume_was_given_is_no_change_of_the_file(hpc, stopped: RunDir) -> None:
    assert hpc("resume", "x", "trainer.max_epochs=5").code == 0
    ended(stopped)
    assert changed(hpc("resume", "x", "--dry-run")) == []


def test_a_file_below_the_config_is_named(hpc, taken, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "below.yaml").write_text(CONFIG)
    (tmp_path / "cfg.yaml").write_text("defaults: [below.yaml]\nseed: 1\n")
    submitted(hpc)
    (tmp_path / "below.yaml").write_text(CONFIG.replace("0.05", "0.5"))
    [told] = changed(hpc("resume", "x", "--dry-run"))
    assert told.startswith("note: below.yaml has changed since the submission: model.init_args.lr")
    assert told.endswith("hpc-train submit cfg.yaml")


def test_a_file_that_is_gone_stops_nothing_and_a_broken_one_is_told(
    hpc, stopped: RunDir, tmp_path: Path
) -> None:
    (tmp_path / "cfg.yaml").write_text(CONFIG + "sed: 1\n")
    said = hpc("resume", "x", "--dry-run")
    assert said.code == 0
    assert "note: cfg.yaml does not read well now: " in said.err
    assert "cfg.yaml:7: sed is no key of hpc-train; a run keeps its own config" in said.err
    (tmp_path / "cfg.yaml").unlink()
    said = hpc("resume", "x", "--dry-run")
    assert (said.code, "cfg.yaml" in said.err) == (0, False)


def test_of_a_sweeps_point_the_swept_values_are_no_change(hpc, taken, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    sent = hpc("submit", "cfg.yaml", "--sweep", "model.init_args.lr=0.1,0.2", "--json")
    sweep = json.loads(sent.out)["sweep"]
    point = f"{sweep}-1"
    assert hpc("status", point).code == 0
    ended(RunDir(tmp_path / "runs" / "x" / point))
    said = hpc("resume", point, "--dry-run")
    assert (said.code, changed(said)) == (0, []), said
    (tmp_path / "cfg.yaml").write_text(f"seed: 3\n{CONFIG}")
    [told] = changed(hpc("resume", point, "--dry-run"))
    assert "since the submission: seed 0 -> 3;" in told
    for words in ([], ["--json"], ["slurm.time=0:40:00"]):
        assert "since the submission: seed 0 -> 3;" in changed(hpc("resume", sweep, *words))[0]
        ended(RunDir(tmp_path / "runs" / "x" / point))


def test_a_file_behind_the_run_is_told_apart(hpc, stopped: RunDir) -> None:
    said = hpc("resume", "x", "cfg.yaml")
    assert said.code == 2
    assert "cfg.yaml stands behind RUN, and a run keeps the config" in said.err
    assert "hpc-train submit cfg.yaml" in said.err


def test_an_argument_that_the_model_no_longer_takes_is_told_with_the_file_that_changed(
    hpc, stopped: RunDir, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(NETS.replace("lr: float = 0.1, ", ""))
    said = hpc("validate", "x")
    assert said.code == 3
    error, fix = said.err.splitlines()
    assert error.endswith("model.init_args.lr: nets.Net takes no such argument")
    shown = f"take that back (hpc-train diff {stopped.run_id} shows it)"
    assert fix == f"  fix: the run was trained with another code: nets.py; {shown}"


def test_a_damaged_checkpoint_is_named_before_a_resume_begins_again(hpc, stopped: RunDir) -> None:
    folder = stopped.checkpoints / "step-000000016"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    said = hpc("resume", "x", "--dry-run")
    assert "note: it has no whole checkpoint (that of step 16 is damaged: " in said.err
    assert "), and begins again at step 0" in said.err
