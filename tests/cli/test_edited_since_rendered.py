"""A config that was edited after its script was rendered: the script's run tells it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.plan.script import PLAN_IN_SCRIPT
from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from hpc_train.supervisor.__main__ import run_of_script
from tests.cli.conftest import Slurm, tell
from tests.cli.test_resume_notes import CONFIG, NETS

KEEPS = "the run keeps what its script says"


@pytest.fixture
def render(hpc, taken: Slurm, tmp_path: Path):
    """`render(WORDS)` makes the run of a script that waits as job 45."""

    def make(*words: str) -> RunDir:
        (tmp_path / "nets.py").write_text(NETS)
        if not (tmp_path / "cfg.yaml").exists():
            (tmp_path / "cfg.yaml").write_text(CONFIG)
        said = hpc("render", "cfg.yaml", *words)
        assert said.code == 0, said.err
        found = PLAN_IN_SCRIPT.search(said.out)
        assert found is not None
        environ = {"SLURM_JOB_ID": "45", "SLURM_CLUSTER_NAME": "c", "SLURM_NTASKS": "1"}
        run = run_of_script(found[0], {**os.environ, **environ}, tmp_path)
        taken.says("45|PENDING|Priority|N/A|N/A||")
        return run

    return make


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("lr: 0.05", "lr: 0.5", "model.init_args.lr 0.05 -> 0.5"),
        ("nets.Net, init_args: {lr: 0.05}", "nets.Net", "model.init_args.lr 0.05 -> (absent)"),
        ("max_epochs: 1", "max_epochs: 9", "trainer.max_epochs 1 -> 9"),
        ("batch_size: 8", "batch_size: 16", "global_batch_size 8 -> 16"),
        ('"0:20:00"', '"1:00:00"', "slurm.time"),
        ("slurm:", "checkpoint: {keep_last: 7}\nslurm:", "checkpoint.keep_last 3 -> 7"),
    ],
)
def test_status_and_resume_say_what_the_file_has_otherwise(
    hpc, taken: Slurm, render, tmp_path: Path, old: str, new: str, told: str
) -> None:
    run = render()
    assert "note" not in hpc("status", "x").out
    edit(tmp_path / "cfg.yaml", old, new)
    note = f"cfg.yaml has changed since the script was rendered: {told}"
    shown = hpc("status", "x").out
    assert f"  note       {note}" in shown
    assert shown.count("changed since") == 1
    assert KEEPS in shown
    tell(run, 2e9, EventKind.RUN_ENDED, state="cancelled", reason="somebody cancelled it")
    taken.says()
    said = hpc("resume", "x").err
    assert f"note: {note}" in said
    again = "with the new: hpc-train render cfg.yaml and sbatch, as a run of its own"
    assert f"{KEEPS}; {again}" in said


def test_a_file_below_it_is_named_and_one_that_does_not_read_is_told(
    hpc, render, tmp_path: Path
) -> None:
    (tmp_path / "base.yaml").write_text(CONFIG)
    (tmp_path / "cfg.yaml").write_text("base: base.yaml\n")
    render()
    edit(tmp_path / "base.yaml", "lr: 0.05", "lr: 0.5")
    assert "base.yaml has changed since the script was rendered: model" in hpc("status", "x").out
    edit(tmp_path / "base.yaml", "lr: 0.5", "lr: [")
    assert f"cfg.yaml does not read well now: {tmp_path}" in hpc("status", "x").out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--nodes", "2", "--gpus", "1", "--time", "30"],
        ["model.init_args.lr=1.0", "trainer.max_epochs=3", "global_batch_size=16"],
        ["checkpoint.keep_last=9", "slurm.partition=x", "slurm.mem=2G", "seed=4", "loggers=[csv]"],
    ],
)
def test_what_was_typed_and_what_only_looks_otherwise_is_no_change(
    hpc, render, tmp_path: Path, words: list[str]
) -> None:
    render(*words)
    file = tmp_path / "cfg.yaml"
    edit(file, '"0:20:00"', '"20:00"' if "--time" in words else '"00:20:00"')
    edit(file, "name: x", "# a comment\nname:   x")
    assert "changed since" not in hpc("status", "x").out


def test_of_a_file_that_is_gone_and_of_an_older_script_nothing_is_said(
    hpc, render, tmp_path: Path
) -> None:
    run = render()
    file = tmp_path / "cfg.yaml"
    edit(file, "lr: 0.05", "lr: 0.5")
    file.rename(tmp_path / "other.yaml")
    assert "changed since" not in hpc("status", "x").out
    (tmp_path / "other.yaml").rename(file)
    assert "changed since" in hpc("status", "x").out
    kept = '"rendered_from": '
    run.plan.write_text(run.plan.read_text().replace(kept, '"of_another_version": '))
    assert "changed since" not in hpc("status", "x").out


RICH = """\
name: x
global_batch_size: 8
model:
  _target_: nets.Net
  lr: 0.05
data: {class_path: nets.Data}
trainer:
  accelerator: cpu
  max_epochs: 1
  callbacks:
    - {class_path: pytorch_lightning.callbacks.LearningRateMonitor}
    - _target_: pytorch_lightning.callbacks.ModelCheckpoint
      monitor: v
  gradient_clip_val: 1
loggers: [csv]
preflight: off
requeue: {max_attempts: 3}
slurm: {nodes: 1, gpus_per_node: 2, time: "20", mem: 4096M, exclude: "node[2-3]",
  constraint: "a&b", account: "0123", qos: low, partition: "p,q"}
"""


def test_a_comment_in_a_file_of_any_form_is_no_change(hpc, render, tmp_path: Path) -> None:
    (tmp_path / "cfg.yaml").write_text(RICH)
    render()
    edit(tmp_path / "cfg.yaml", "name: x", "# a comment\nname: x")
    assert "changed since" not in hpc("status", "x").out
    edit(tmp_path / "cfg.yaml", "monitor: v", "monitor: w")
    told = "trainer.callbacks.1.init_args.monitor v -> w; "
    assert f"since the script was rendered: {told}" in hpc("status", "x").out


def test_of_a_script_of_its_own_a_comment_is_no_change(hpc, render, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    script = "script: {path: train.py, accelerator: cpu}"
    text = f'name: x\n{script}\nslurm: {{gpus_per_node: 1, time: "20"}}\n'
    (tmp_path / "cfg.yaml").write_text(text)
    render()
    edit(tmp_path / "cfg.yaml", "name: x", "# a comment\nname: x")
    assert "changed since" not in hpc("status", "x").out
    edit(tmp_path / "cfg.yaml", '"20"', '"30"')
    assert "has changed since the script was rendered: slurm.time" in hpc("status", "x").out
