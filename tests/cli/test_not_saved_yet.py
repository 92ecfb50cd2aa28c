"""The model of a run that waits or trains and has saved nothing yet: what waits for it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from tests.cli.conftest import Slurm
from tests.cli.run_of_yesterday import NETS, ended, project, refused, saved

__all__ = ["project"]
METHOD = "    def {}(self, *batch): ...\n"
WHOLE = "in one line with its submission: hpc-train submit cfg.yaml --wait &&"


@pytest.fixture
def waiting(hpc, taken: Slurm, project: Path) -> RunDir:
    """A run whose job 7 is in the queue."""
    steps = "".join(METHOD.format(f"{it}_step") for it in ("validation", "predict"))
    loaders = "".join(METHOD.format(f"{it}_dataloader") for it in ("val", "predict"))
    text = NETS.replace("class Data", f"{steps}class Data") + loaders
    (project / "nets.py").write_text(text)
    said = hpc("submit", "cfg.yaml")
    assert said.code == 0, said
    (folder,) = Path("runs/x").absolute().iterdir()
    taken.says("7|PENDING|Priority|N/A|N/A")
    return RunDir(folder)


@pytest.mark.parametrize("verb", ["test", "validate", "predict"])
def test_an_evaluation_of_a_run_that_goes_on_is_told_with_what_waits_for_it(
    hpc, waiting: RunDir, verb: str
) -> None:
    """`says where it stands` was all that was said of a run that was submitted just before."""
    begun = f"x ({waiting.run_id}) has not begun yet, and has saved no checkpoint"
    fix = f"fix: hpc-train logs -f {waiting.run_id} && hpc-train {verb} {waiting.run_id}"
    refused(hpc, f"{verb} x", begun, f"{fix}; {WHOLE} hpc-train {verb} x")
    best = f"{fix} --ckpt best; {WHOLE} hpc-train {verb} x --ckpt best"
    refused(hpc, f"{verb} x --ckpt best", begun, best)


def test_where_it_trains_its_step_is_told(hpc, waiting: RunDir, taken: Slurm) -> None:
    now, told = time.time(), {"job_id": "7", "restarts": 0, "nodes": ["a"], "verb": "fit"}
    started = Event(now, EventKind.ATTEMPT_STARTED, {**told, "attempt": 0})
    append_event(waiting.events, started)
    waiting.attempt(0).path.mkdir(parents=True, exist_ok=True)
    beat = Heartbeat(rank=0, node="a", pid=1, time=now, moved=now, phase="train", step=5)
    write_heartbeat(waiting.attempt(0), beat)
    taken.says("7|RUNNING|None|N/A|N/A")
    refused(hpc, "test x", "still trains (step 5), and has saved no checkpoint", "logs -f")


def test_weights_of_a_run_that_goes_on_are_told_so(hpc, waiting: RunDir) -> None:
    begun = f"init_from: x ({waiting.run_id}) has not begun yet, and has saved no checkpoint"
    wait = f"hpc-train logs -f {waiting.run_id} &&"
    fix = f"fix: put `{wait}` in front of it, which waits for its end"
    for more in ("", " --after x", " --dry-run"):
        said = refused(hpc, f"submit cfg.yaml --name fine init_from=x{more}", begun, fix)
        assert "CFG" not in said


def test_a_run_that_has_ended_without_a_checkpoint_is_told_as_before(hpc, waiting: RunDir) -> None:
    ended(waiting, "failed")
    said = refused(hpc, "test x", "has saved no checkpoint", "says where it stands")
    assert "logs -f" not in said
    fix = refused(hpc, "submit cfg.yaml init_from=x", "has saved no checkpoint", "name a run that")
    assert "logs -f" not in fix


def test_a_run_that_goes_on_and_has_saved_gives_what_it_has(hpc, waiting: RunDir) -> None:
    saved(waiting, 12)
    said = hpc("submit", "cfg.yaml", "--name", "fine", "init_from=x", "--dry-run")
    assert (said.code, "(last: step 12)" in said.err) == (0, True), said
