"""A sweep that is submitted twice: which one its name means, and that the other goes on."""

from __future__ import annotations

import json
import os
import secrets
import time

import pytest

from hpc_train.runs import registry
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.sweep_dir import SweepDir
from tests.cli.run_of_yesterday import ended, project

__all__ = ["project"]

WORDS = ("submit", "cfg.yaml", "name=sw", "--sweep", "seed=0,1")


@pytest.fixture
def twice(hpc, slurm, project, monkeypatch: pytest.MonkeyPatch):
    """Submits the sweep, each time with the next of these random ends, in the same second."""
    slurm.has("scontrol", "printf 'MaxArraySize            = 9\\nMaxJobCount = 10000\\n'")
    ends = iter(("ffff", "5457", "0001"))
    token = secrets.token_hex
    monkeypatch.setattr("secrets.token_hex", lambda size: next(ends) if size == 2 else token(size))
    monkeypatch.setattr(registry, "_stamp", lambda _: "20261127-204917")

    def submit(job: int, *more: str):
        slurm.has("sbatch", f"echo {job}")
        said = hpc(*WORDS, *more, "--json")
        assert said.code == 0, said
        slurm.says(*(f"{it}_{k}|RUNNING|None|N/A" for it in range(7, job + 1) for k in (0, 1)))
        return SweepDir(project / "runs" / "sw" / json.loads(said.out)["sweep"]), said.err

    return submit


def test_the_second_submission_is_told_of_the_first(hpc, twice) -> None:
    first, alone = twice(7)
    second, told = twice(8)
    same = f"{first.sweep_id} trains the same points and is running as job array 7"
    assert f"note: {same}: where one is enough, hpc-train cancel {second.sweep_id}\n" in told
    assert "trains the same" not in alone


@pytest.mark.parametrize("more", [["trainer.max_epochs=3"], ["--sweep", "model.init_args.lr=1,2"]])
def test_another_training_or_other_points_are_not_the_same_sweep(hpc, twice, more) -> None:
    twice(7)
    assert "trains the same" not in twice(8, *more)[1]


def test_the_name_means_the_second_whose_id_sorts_first(hpc, twice) -> None:
    first, _ = twice(7)
    second, _ = twice(8)
    assert second.sweep_id < first.sweep_id
    for word in ("sw", "runs/sw"):
        assert f"sw  sweep {second.sweep_id}  " in hpc("status", word).out
    out = hpc("status", "sw").out
    other = f"of this name {first.sweep_id} (a sweep of 2 points: 2 running) goes on as well"
    assert f"  note       {other}\n" in out
    assert "goes on as well" not in hpc("status", first.sweep_id).out
    third, _ = twice(9)
    others = f"{second.sweep_id} (a sweep of 2 points: 2 running) and {first.sweep_id} (a sweep"
    assert f"of this name {others} of 2 points: 2 running) go on as well" in hpc("status", "sw").out
    rows = json.loads(hpc("list", "--json").out)["runs"]
    assert [row["run"] for row in rows] == [it.sweep_id for it in (third, second, first)]


def test_a_sweep_that_has_ended_is_not_told(hpc, twice) -> None:
    first, _ = twice(7)
    for number in (0, 1):
        assert hpc("status", f"{first.sweep_id}-{number}").code == 0
        ended(RunDir(first.point(number).path), "completed")
    assert "trains the same" not in twice(8)[1]
    assert "as well" not in hpc("status", "sw").out


@pytest.mark.parametrize("begun", [(), (0, 1)])
def test_a_sweep_that_is_being_cancelled_is_not_told(hpc, slurm, twice, begun) -> None:
    first, _ = twice(7)
    for number in begun:
        assert hpc("status", f"{first.sweep_id}-{number}").code == 0
        began = {"attempt": 0, "job_id": f"7_{number}", "nodes": ["a"]}
        run = RunDir(first.point(number).path)
        append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, began))
    slurm.has("scancel", "exit 0")
    assert hpc("cancel", first.sweep_id).code == 0
    assert "trains the same" not in twice(8)[1]
    assert "as well" not in hpc("status", "sw").out


def test_a_sweep_one_of_whose_points_is_being_cancelled_is_told(hpc, slurm, twice) -> None:
    first, _ = twice(7)
    assert hpc("status", f"{first.sweep_id}-0").code == 0
    slurm.has("scancel", "exit 0")
    assert hpc("cancel", f"{first.sweep_id}-0").code == 0
    assert f"{first.sweep_id} trains the same points" in twice(8)[1]


def test_a_run_is_told_of_a_sweep_of_its_name(hpc, slurm, twice) -> None:
    first, _ = twice(7)
    slurm.has("sbatch", "echo Submitted batch job 8")
    said = hpc("submit", "cfg.yaml", "name=sw", "--cluster", "slurm", "--json")
    assert said.code == 0, said
    run = json.loads(said.out)["run"]
    os.utime(RunDir(first.path.with_name(run)).plan, (9e9, 9e9))
    out = hpc("status", "sw").out
    assert f"  run        {run}\n" in out
    assert f"of this name {first.sweep_id} (a sweep of 2 points: 2 running) goes on as well" in out


def test_cancel_names_each_that_may_be_meant(hpc, twice) -> None:
    first, _ = twice(7)
    second, _ = twice(8)
    said = hpc("cancel", "sw")
    both = f"hpc-train cancel {second.sweep_id}, or hpc-train cancel {first.sweep_id}"
    assert said.code == 2
    assert said.err.endswith(f"  fix: name the one that is meant by its id: {both}\n")
