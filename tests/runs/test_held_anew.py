"""A file of init_from that was replaced before the first step is read as it is now."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from hpc_train.backends.find_weights import hold_weights
from hpc_train.backends.held_anew import hold_anew, notes_on_replaced
from hpc_train.errors import CheckError
from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import RunDir
from tests.plan.test_from_config import plan
from tests.runs.test_whole_models import Net, saved

FIRST, SECOND = {"a": 1}, {"a": 2}


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "runs" / "digits" / "20261121-080449-10d1")
    run.weights.mkdir(parents=True)
    return run


def plan_of(file: Path) -> Plan:
    return dataclasses.replace(plan(), weights=str(file))


def replaced(file: Path, held: object) -> None:
    saved(file.with_suffix(".new"), held).replace(file)


def test_the_file_of_now_is_linked_and_told(run: RunDir, tmp_path: Path) -> None:
    file = saved(tmp_path / "net.pt", FIRST)
    hold_weights(file, run.weights)
    replaced(file, SECOND)
    decided = plan_of(file)
    assert [*notes_on_replaced(run, decided)] == [
        (
            f"the weights in {file} are read as they are now: the file was replaced since digits"
            " (20261121-080449-10d1) was submitted"
        )
    ]
    hold_anew(run, decided)
    assert (run.weights / "net.pt").samefile(file)
    assert [*notes_on_replaced(run, decided)] == []
    assert [it.name for it in run.weights.iterdir()] == ["net.pt"]


def test_one_that_holds_none_is_refused(run: RunDir, tmp_path: Path) -> None:
    file = saved(tmp_path / "net.pt", FIRST)
    hold_weights(file, run.weights)
    replaced(file, Net())
    with pytest.raises(CheckError, match="is a whole model"):
        [*notes_on_replaced(run, plan_of(file))]


@pytest.mark.parametrize("why", ["stepped", "of a run", "gone", "the same", "not held"])
def test_otherwise_the_run_has_what_it_held(run: RunDir, tmp_path: Path, why: str) -> None:
    other = tmp_path / "runs" / "digits" / "20261120-080449-10d1"
    file = (other / "models" if why == "of a run" else tmp_path) / "net.pt"
    file.parent.mkdir(parents=True, exist_ok=True)
    (other / "plan.json").parent.mkdir(exist_ok=True)
    (other / "plan.json").write_text("{}")
    saved(file, FIRST)
    if why != "not held":
        hold_weights(file, run.weights)
    if why == "gone":
        file.unlink()
    elif why != "the same":
        replaced(file, SECOND)
    if why == "stepped":
        folder = run.checkpoints / "step-000000005"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"step": 5}))
    before = [(it.name, it.stat().st_ino) for it in run.weights.iterdir()]
    decided = plan_of(file)
    assert [*notes_on_replaced(run, decided)] == []
    hold_anew(run, decided)
    assert [(it.name, it.stat().st_ino) for it in run.weights.iterdir()] == before
