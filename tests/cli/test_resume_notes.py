"""`hpc-train resume` after the config's file was edited: a run keeps its own, and this is told."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path

import click
import pytest

from hpc_train import api
from hpc_train.cli import following
from hpc_train.cli.common import CODE_TOLD
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import attempt_environment
from hpc_train.runs.read_plan import read_plan
from tests.cli.conftest import tell

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
    assert changed(said) == [f"{told} --nodes 1 model.init_args.width=4 slurm.time=0:30:00"]
    if "--json" in how:
        json.loads(said.out)


def test_a_change_within_a_list_is_told_by_its_place(hpc, taken, tmp_path: Path) -> None:
    """Both lists of callbacks were told whole, over six lines."""
    (tmp_path / "nets.py").write_text(NETS)
    stops = "{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: x%s}}"
    rates = "{class_path: pytorch_lightning.callbacks.LearningRateMonitor}"
    text = CONFIG.replace("trainer: {", f"trainer: {{callbacks: [{stops}, {rates}], ")
    (tmp_path / "cfg.yaml").write_text(text % ", patience: 3")
    submitted(hpc)
    at = "trainer.callbacks.0.init_args.patience"
    for now, told in {", patience: 2": "3 -> 2", "": "3 -> (absent)"}.items():
        (tmp_path / "cfg.yaml").write_text(text % now)
        [note] = changed(hpc("resume", "x", "--dry-run"))
        assert f"since the submission: {at} {told}; a run keeps its own config" in note
    (tmp_path / "cfg.yaml").write_text(text.replace(f", {rates}", "") % ", patience: 3")
    [note] = changed(hpc("resume", "x", "--dry-run"))
    assert "since the submission: trainer.callbacks [{" in note


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


def test_an_environment_that_was_mended_in_the_file_is_offered_to_the_run(
    hpc, taken, tmp_path: Path
) -> None:
    """Its lines are a list: another run was proposed, and `resume` alone fails as before."""
    (tmp_path / "nets.py").write_text(NETS)
    was = "env: {setup: [soruce /opt/x.sh], variables: {A: b, C: d}}\n"
    (tmp_path / "cfg.yaml").write_text(CONFIG + was)
    submitted(hpc)
    setup = "setup: ['echo \"it''s, $HOME\"', 'true']"
    for variables, way in {"A: b": "submit cfg.yaml", "A: b, C: d": "resume", "": "resume"}.items():
        now = f"env: {{{setup}, variables: {{{variables}}}}}\n"
        (tmp_path / "cfg.yaml").write_text(CONFIG + now)
        [told] = changed(hpc("resume", "x", "--dry-run"))
        typed = told.partition("with the new: hpc-train ")[2]
        assert typed.startswith(way), told
        if way == "resume":
            said = hpc(*shlex.split(typed), "--dry-run")
            assert 'echo "it\'s, $HOME"\ntrue\n' in said.out, said
            assert changed(said) == []


def test_an_environment_that_is_left_out_in_the_file_is_emptied_in_the_run(
    hpc, taken, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG + "env: {conda: base}\n")
    run = submitted(hpc)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    [told] = changed(hpc("resume", "x", "--dry-run"))
    assert told.endswith(f"with the new: hpc-train resume {run.run_id} env.conda=null")


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


def test_status_tells_of_a_run_that_waits_that_its_file_has_changed(
    hpc, taken, tmp_path: Path
) -> None:
    """It trains with the old value, and only `diff` and `resume` said so."""

    def notes() -> list[str]:
        said = hpc("status", "x")
        assert said.code == 0, said
        return [line for line in said.out.splitlines() if line.startswith("  note ")]

    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    sent = hpc("submit", "cfg.yaml", "seed=1", "--json")
    run = RunDir(Path(json.loads(sent.out)["run_dir"]))
    taken.says("7|PENDING|Priority|N/A")
    assert notes() == []
    (tmp_path / "cfg.yaml").write_text(f"seed: 3\n# the same\n{CONFIG}")
    assert notes() == []  # the seed was typed
    (tmp_path / "cfg.yaml").write_text(CONFIG.replace("0.05", "0.5"))
    what = "cfg.yaml has changed since the submission: model.init_args.lr 0.05 -> 0.5"
    assert notes() == [f"  note       {what}; a run keeps its own config"]
    (tmp_path / "cfg.yaml").write_text(f"sed: 3\n{CONFIG}")
    assert "cfg.yaml does not read well now: " in notes()[0]
    (tmp_path / "cfg.yaml").unlink()
    assert notes() == []
    (tmp_path / "cfg.yaml").write_text(CONFIG.replace("0.05", "0.5"))
    ended(run)
    assert notes() == []


@pytest.mark.parametrize("attempt", [None, 0])
def test_status_tells_that_code_has_changed_since_the_run_has_begun_with_it(
    hpc, taken, tmp_path: Path, attempt: int | None
) -> None:
    """A job that is put back into the queue at night begins with it."""

    def notes() -> list[str]:
        said = hpc("status", "x")
        assert said.code == 0, said
        return [line for line in said.out.splitlines() if line.startswith("  note ")]

    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)

    write("nets.py", f"import layers\n{NETS}")
    write("layers.py", "")
    write("other.py", "")
    write("cfg.yaml", CONFIG)
    run = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    taken.says("7|PENDING|Priority|N/A")
    since, who = "the submission", "the job"
    if attempt is not None:
        taken.says("7|RUNNING|None|N/A")
        since, who = "attempt 0", "the next attempt"
        tell(run, time.time(), EventKind.ATTEMPT_STARTED, attempt=0, job_id="7", first_step=0)
        run.attempt(0).path.mkdir(parents=True)
        attempt_environment(run, read_plan(run), 0)
    assert notes() == []
    write("other.py", "x = 1")  # which it does not import
    assert notes() == []
    keep = "(snapshot=git keeps the code)"
    write("nets.py", f"import layers\nx = 1\n{NETS}")
    told = f"nets.py has changed since {since}: {who} takes it {keep}"
    assert notes() == [f"  note       {told}"]
    (tmp_path / "layers.py").unlink()
    told = f"layers.py (deleted), nets.py have changed since {since}: {who} takes them {keep}"
    assert notes() == [f"  note       {told}"]
    write("nets.py", f"import layers\n{NETS}")
    write("layers.py", "")
    assert notes() == []
    write("nets.py", "x = 1")
    ended(run)
    assert notes() == []


TWO = NETS + "class Other(LightningModule):\n    def __init__(self, depth: int = 2): ...\n"
STOPS = "pytorch_lightning.callbacks.EarlyStopping"
LISTED = f"{{class_path: {STOPS}, init_args: {{monitor: loss, patience: 3}}}}"


@pytest.mark.parametrize(
    "typed", ["model.class_path=nets.Other", "trainer.callbacks.0.init_args.patience=5"]
)
def test_what_a_typed_value_takes_from_the_file_is_no_change_of_it(
    hpc, taken, tmp_path: Path, typed: str
) -> None:
    text = CONFIG.replace("max_epochs: 1", f"max_epochs: 1, callbacks: [{LISTED}]")
    (tmp_path / "nets.py").write_text(TWO)
    (tmp_path / "cfg.yaml").write_text(text)
    submitted(hpc, typed)
    assert changed(hpc("resume", "x", "--dry-run")) == []
    assert "lr" not in hpc("diff", "x").out
    (tmp_path / "cfg.yaml").write_text(text.replace("max_epochs: 1", "max_epochs: 2"))
    [told] = changed(hpc("resume", "x", "--dry-run"))
    assert "submission: trainer.max_epochs 1 -> 2; a run keeps" in told


def test_arguments_of_the_class_that_was_typed_as_it_stands_are_compared(
    hpc, taken, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(TWO)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    submitted(hpc, "model.class_path=nets.Net")
    (tmp_path / "cfg.yaml").write_text(CONFIG.replace("0.05", "0.5"))
    assert "model.init_args.lr 0.05 -> 0.5" in changed(hpc("resume", "x", "--dry-run"))[0]


@pytest.mark.parametrize(
    ("told", "noted", "is_said"),
    [
        ("nets.py", "nets.py; a run that was submitted with snapshot=git keeps its code", False),
        ("nets.py", "nets.py", False),
        ("nets.py", "nets.py, more.py; a run", True),
        (None, "nets.py", True),
    ],
)
def test_edited_code_that_resume_has_named_is_not_named_again_by_the_attempt(
    slurm, make_run, told: str | None, noted: str, is_said: bool
) -> None:
    run = make_run(3, ended=False)
    text = f"the code is not that of attempt 0: {noted}"
    tell(run, time.time(), EventKind.NOTE, attempt=0, text=text)
    with click.Context(click.Command("resume")) as context:
        context.meta[CODE_TOLD] = told
        notes = following._Notes(api.Run(run))
        assert notes.new(api.Run(run).status()) == [text] * is_said
    assert text in api.Run(run).status().attempts[0].notes


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


def test_the_line_with_the_new_values_has_what_was_typed(
    hpc, stopped: RunDir, tmp_path: Path
) -> None:
    """It trained for as long as the file said."""
    (tmp_path / "cfg.yaml").write_text(CONFIG.replace("0.05", "0.5"))
    (told,) = changed(hpc("resume", "x", "trainer.max_epochs=9", "--dry-run"))
    assert told.endswith(
        "--nodes 1 model.init_args.width=4 slurm.time=0:30:00 trainer.max_epochs=9"
    )


@pytest.mark.parametrize("named", ["base", "RUN", "runs/base/RUN", "runs/base/RUN/a.ckpt"])
def test_weights_that_the_file_names_by_a_run_or_a_path_are_no_change(
    hpc, stopped: RunDir, tmp_path: Path, named: str
) -> None:
    """The run has the whole path of what was found, and its file the word."""
    whole = tmp_path / "runs" / "base" / "RUN" / "a.ckpt"
    kept = stopped.config.read_text()
    assert "init_from: null" in kept
    stopped.config.write_text(kept.replace("init_from: null", f"init_from: {whole}"))
    (tmp_path / "cfg.yaml").write_text(f"{CONFIG}init_from: {named}\n")
    assert changed(hpc("resume", "x", "--dry-run")) == []
    (tmp_path / "cfg.yaml").write_text(f"{CONFIG}init_from: another\n")
    assert f"init_from {whole} -> another" in changed(hpc("resume", "x", "--dry-run"))[0]
