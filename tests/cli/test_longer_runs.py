"""What is said of a complete run that is to train longer: by its file, and after EarlyStopping."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import CONFIG, ended, project, refused, run

__all__ = ["project", "run"]
LENGTH = "max_epochs: 1"
STOPS = "{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: l%s}}"
SAID = "ended it at step 12 of 140, epoch 1"
BETTER = "Monitored metric l did not improve in the last 3 records. Best score: 1.000."
AGAIN = f"note: EarlyStopping {SAID}, and ends it again "


def complete(run: RunDir, epoch: int = 1, reason: str = "all of its steps are taken") -> RunDir:
    now = time.time()
    told = {"attempt": 0, "job_id": "7", "restarts": 0, "nodes": ["a"], "verb": "fit"}
    append_event(run.events, Event(now, EventKind.ATTEMPT_STARTED, told))
    told = {"attempt": 0, "outcome": "completed", "reason": reason, "last_step": 12}
    append_event(run.events, Event(now, EventKind.ATTEMPT_ENDED, told))
    run.final_metrics.write_text(f'{{"step": 12, "epoch": {epoch}}}')
    return ended(run, "completed")


def edited(was: str, now: str, file: str = "cfg.yaml") -> None:
    Path(file).write_text(Path(file).read_text().replace(was, now))


def with_callbacks(hpc, text: str) -> RunDir:
    """A run of ten epochs with these callbacks, which has not begun."""
    text = CONFIG.replace(LENGTH, f"max_epochs: 10, callbacks: {text}")
    Path("cfg.yaml").write_text(text)
    said = hpc("submit", "cfg.yaml")
    assert said.code == 0, said
    run = max(map(RunDir, Path("runs/x").absolute().iterdir()), key=lambda it: it.run_id)
    return ended(run, "cancelled")


def test_an_end_that_the_file_has_by_now_is_told_as_the_command_to_type(hpc, run: RunDir) -> None:
    """The number was left to find: trainer.max_epochs=N, with N above 1."""
    complete(run)
    edited(LENGTH, "max_epochs: 6")
    to_type = f"hpc-train resume {run.run_id} trainer.max_epochs=6"
    fix = f"cfg.yaml has trainer.max_epochs 6 by now: {to_type}"
    said = refused(hpc, "resume x", "is complete", fix)
    assert said.endswith(to_type)
    assert hpc(*shlex.split(to_type)[1:], "--dry-run").code == 0


@pytest.mark.parametrize("now", ["max_epochs: 1", "max_epochs: -1", "max_steps: 99"])
def test_an_end_of_the_file_that_is_not_larger_is_not_told(hpc, run: RunDir, now: str) -> None:
    complete(run)
    edited(LENGTH, now)
    fix = f"to train longer: hpc-train resume {run.run_id} trainer.max_epochs=N, with N above 1"
    refused(hpc, "resume x", "is complete", fix)


def test_an_end_that_was_typed_is_not_the_files(hpc, project: Path) -> None:
    assert hpc("submit", "cfg.yaml", "trainer.max_epochs=2").code == 0
    (folder,) = Path("runs/x").absolute().iterdir()
    complete(RunDir(folder), epoch=2)
    edited(LENGTH, "max_epochs: 9")
    refused(hpc, "resume x", "is complete", "trainer.max_epochs=N, with N above 2")


def test_the_file_is_the_base_that_has_it(hpc, project: Path) -> None:
    Path("own.yaml").write_text("defaults: [cfg.yaml]\nname: y\n")
    assert hpc("submit", "own.yaml").code == 0
    (folder,) = Path("runs/y").absolute().iterdir()
    complete(RunDir(folder))
    edited(LENGTH, "max_epochs: 4")
    refused(hpc, "resume y", "is complete", "fix: cfg.yaml has trainer.max_epochs 4 by now: ")


def test_more_epochs_behind_early_stopping_are_noted_with_what_has_more_patience(
    hpc, project: Path
) -> None:
    """One epoch was trained, and nothing had said so."""
    run = with_callbacks(hpc, f"[{STOPS % ', patience: 2'}]")
    complete(run, reason=f"EarlyStopping {SAID}: {BETTER}")
    more = f"trainer.callbacks.0.init_args.patience=4 init_from={run.run_id}"
    way = f"with more patience from these weights: hpc-train submit cfg.yaml {more}"
    refused(hpc, "resume x", "is complete", f"fix: EarlyStopping {SAID}; {way}")
    again = f"{AGAIN}at the next validation that is no better: a run keeps its patience; {way}\n"
    for dry in (["--dry-run"], []):
        said = hpc("resume", "x", "trainer.max_epochs=20", *dry)
        assert (said.code, again in said.err) == (0, True), said


def test_where_the_patience_stands_in_no_list_it_is_named(hpc, project: Path) -> None:
    run = complete(with_callbacks(hpc, "[]"), reason=f"EarlyStopping {SAID}")
    said = hpc("resume", "x", "trainer.max_epochs=20", "--dry-run").err
    own = "a run of its own has these weights: hpc-train submit cfg.yaml init_from="
    assert f"{own}{run.run_id}, with more patience in the config\n" in said


def test_a_threshold_of_early_stopping_is_no_patience(hpc, project: Path) -> None:
    why = "Stopping threshold reached: l = 0.1 < 0.2."
    complete(with_callbacks(hpc, f"[{STOPS % ''}]"), reason=f"EarlyStopping {SAID}: {why}")
    said = hpc("resume", "x", "trainer.max_epochs=20", "--dry-run").err
    assert f"{AGAIN}once its threshold is met: a run keeps its thresholds; a run of its own" in said
    assert "patience" not in said


@pytest.mark.parametrize(
    "reason",
    [
        "all of its steps are taken",
        f"Timer {SAID}: its time is over",
        f"the training's own code (trainer.should_stop) {SAID}",
    ],
)
def test_any_other_end_is_made_longer_without_that_note(hpc, project: Path, reason: str) -> None:
    complete(with_callbacks(hpc, f"[{STOPS % ''}]"), reason=reason)
    said = hpc("resume", "x", "trainer.max_epochs=20", "--dry-run")
    assert (said.code, "EarlyStopping" in said.err) == (0, False), said


def test_a_stop_before_the_last_attempt_is_over(hpc, project: Path) -> None:
    run = complete(with_callbacks(hpc, f"[{STOPS % ''}]"), reason=f"EarlyStopping {SAID}")
    told = {"attempt": 1, "job_id": "8", "restarts": 0, "nodes": ["a"], "verb": "fit"}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, told))
    told = {"attempt": 1, "outcome": "completed", "reason": "", "last_step": 140}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, told))
    ended(run, "completed")
    said = hpc("resume", "x", "trainer.max_epochs=20", "--dry-run")
    assert (said.code, "EarlyStopping" in said.err) == (0, False), said
