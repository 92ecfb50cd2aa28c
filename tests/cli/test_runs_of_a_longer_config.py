"""A config that is to train longer, submitted again: the run that could go on is named."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import CONFIG, ended, project, run
from tests.cli.test_longer_runs import complete

__all__ = ["project", "run"]
SAME = "trained the same with"


def saved(run: RunDir) -> RunDir:
    manifest = run.checkpoints / "step-000000012" / "manifest.json"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text("{}")
    return run


def again(hpc, trainer: str, more: str = "") -> str:
    """What a dry run and a submission say of the file with these ends."""
    text = CONFIG.replace("max_epochs: 1", trainer).replace('"0:10:00"', '"0:40:00"')
    Path("cfg.yaml").write_text(text + more)
    before, said = hpc("submit", "cfg.yaml", "--dry-run"), hpc("submit", "cfg.yaml")
    assert (before.code, said.code) == (0, 0), (before, said)
    assert (SAME in before.err) == (SAME in said.err)
    return before.err


def test_a_complete_run_of_a_smaller_end_is_named_with_the_line_that_goes_on(
    hpc, run: RunDir
) -> None:
    complete(saved(run))
    said = again(hpc, "max_epochs: 6")
    to_type = f"hpc-train resume {run.run_id} trainer.max_epochs=6"
    assert f"note: {run.run_id} {SAME} trainer.max_epochs 1 and finished at epoch 1: " in said
    line = said.partition(": hpc-train ")[2].partition(" goes on there, this run begins anew")[0]
    assert f"hpc-train {line}" in (to_type, to_type.replace(run.run_id, "x"))
    assert hpc(*shlex.split(line), "--dry-run").code == 0


def test_a_stopped_run_of_a_smaller_end_is_named_as_well(hpc, run: RunDir) -> None:
    ended(saved(run), "cancelled")
    assert f"{SAME} trainer.max_epochs 1 and is cancelled at step 12: " in again(
        hpc, "max_epochs: 3"
    )


def test_several_ends_are_in_the_line(hpc, run: RunDir) -> None:
    plan = json.loads(run.plan.read_text())
    plan["training"]["trainer"]["max_steps"] = 12
    run.plan.write_text(json.dumps(plan))
    complete(saved(run))
    said = again(hpc, "max_epochs: 4, max_steps: 40")
    assert f"{SAME} trainer.max_epochs 1 and trainer.max_steps 12 and finished" in said
    assert "trainer.max_epochs=4 trainer.max_steps=40 goes on" in said


@pytest.mark.parametrize(
    ("trainer", "more"),
    [
        ("max_epochs: 1", ""),  # the same: it is complete
        ("max_epochs: 6", "seed: 7\n"),
        ("max_epochs: 6, gradient_clip_val: 1.0", ""),
        ("max_epochs: -1", ""),
        ("max_epochs: 6, max_time: '00:01:00:00'", ""),
    ],
)
def test_nothing_is_said_where_more_is_another_or_none_is_longer(
    hpc, run: RunDir, trainer: str, more: str
) -> None:
    complete(saved(run))
    assert SAME not in again(hpc, trainer, more)


def test_nothing_is_said_of_a_run_that_left_no_checkpoint(hpc, run: RunDir) -> None:
    shutil.rmtree(run.checkpoints)
    complete(run)
    assert SAME not in again(hpc, "max_epochs: 6")


def test_nothing_is_said_where_its_schedule_ends_with_its_length(hpc, run: RunDir) -> None:
    complete(saved(run))
    one = {"name": "OneCycleLR", "length": 12, "interval": "step"}
    run.schedules.write_text(json.dumps([one]))
    assert SAME not in again(hpc, "max_epochs: 6")
