"""Checkpoints that somebody has removed: `resume` and `checkpoints` know that there were some."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from hpc_train.training.resume.manifest import Manifest
from tests.cli.conftest import tell
from tests.cli.test_resume_notes import CONFIG, NETS, ended, submitted

BEGINS = "it has no whole checkpoint, and begins again at step 0"


@pytest.fixture
def run(hpc, taken, tmp_path: Path) -> RunDir:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    return submitted(hpc)


def save(run: RunDir, step: int) -> Path:
    folder = run.checkpoints / f"step-{step:09d}"
    folder.mkdir(parents=True)
    manifest = Manifest(
        step=step,
        epoch=0,
        samples=0,
        world_size=2,
        accumulate=1,
        config_hash="",
        attempt=0,
        time=1.0,
        versions={},
        files=(),
    )
    (folder / "manifest.json").write_text(manifest.to_json())
    return folder


def attempt(run: RunDir, number: int, saved_step: int) -> None:
    tell(run, number, EventKind.ATTEMPT_STARTED, attempt=number, job_id="7")
    tell(
        run,
        number + 0.5,
        EventKind.ATTEMPT_ENDED,
        attempt=number,
        outcome="cancelled",
        last_step=9,
        saved_step=saved_step,
    )
    ended(run)


def noted(hpc) -> str:
    said = hpc("resume", "x", "--dry-run")
    assert said.code == 0, said
    return said.err


@pytest.mark.parametrize("saved", [(192,), (192, 218), (192, 0)])
def test_checkpoints_that_are_no_longer_there_are_told_by_the_runs_record(
    hpc, run: RunDir, saved: tuple[int, ...]
) -> None:
    """It said "no checkpoints yet", and nothing of what was lost."""
    for number, step in enumerate(saved):
        attempt(run, number, step)
    what = f"step {max(saved)} was saved, and is no longer there"
    assert f"note: {what}: it begins again at step 0\n" in noted(hpc)
    assert f"no checkpoints: {what}\n" in hpc("checkpoints", "x").err


def test_where_an_older_one_is_left_it_goes_on_there(hpc, run: RunDir) -> None:
    save(run, 100)
    newest = save(run, 192)
    attempt(run, 0, 192)
    assert "no longer there" not in noted(hpc)
    shutil.rmtree(newest)
    assert "note: step 192 was saved, and is no longer there: goes on from step 100\n" in noted(hpc)
    # What an attempt saved before which another one had to begin is told by that one.
    attempt(run, 1, 100)
    assert "no longer there" not in noted(hpc)


def test_a_run_that_has_saved_nothing_lost_nothing(hpc, run: RunDir) -> None:
    assert BEGINS in noted(hpc)
    assert "no checkpoints yet\n" in hpc("checkpoints", "x").err
    attempt(run, 0, 0)
    assert BEGINS in noted(hpc)
    assert "no checkpoints yet\n" in hpc("checkpoints", "x").err


def test_what_was_found_damaged_was_not_removed(hpc, run: RunDir) -> None:
    attempt(run, 0, 40)
    tell(run, 1, EventKind.ATTEMPT_STARTED, attempt=1, job_id="7")
    tell(run, 2, EventKind.CHECKPOINT_DAMAGED, attempt=1, step=40, reason="a file is missing")
    ended(run)
    assert BEGINS in noted(hpc)
