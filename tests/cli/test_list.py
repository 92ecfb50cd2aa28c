"""`hpc-train list`: which runs it shows, what it reads for them, and how often it asks Slurm."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat

MINUTE_S = 60.0


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunDir]:
    """A run of job NUMBER, made NUMBER minutes after the first; ids sort by time, names do not."""

    def make(number: int, *, ended: bool, run_id: str = "") -> RunDir:
        at = time.time() - 1000 * MINUTE_S + number * MINUTE_S
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(at))
        run = RunDir(tmp_path / "runs" / f"name{number % 3}" / (run_id or f"{stamp}-{number:04x}"))
        run.attempt(0).path.mkdir(parents=True)
        run.plan.write_text("{}")
        os.utime(run.plan, (at, at))
        run.latest.symlink_to("attempts/0")
        tell(run, at, EventKind.SUBMITTED, job_id=str(number), backend="slurm")
        tell(run, at + 1, EventKind.ATTEMPT_STARTED, attempt=0, job_id=str(number))
        if ended:
            end(run, at + 2)
        return run

    return make


def tell(run: RunDir, at: float, kind: EventKind, **data: object) -> None:
    append_event(run.events, Event(at, kind, data))


def end(run: RunDir, at: float) -> None:
    told = {"outcome": "completed", "last_step": 7, "saved_step": 7}
    tell(run, at, EventKind.ATTEMPT_ENDED, attempt=0, **told)
    tell(run, at, EventKind.RUN_ENDED, attempt=0, state="completed", reason="all done")


@pytest.fixture
def listed(hpc) -> Callable[..., list[dict[str, str]]]:
    """The rows of the table, by the header's words."""

    def call(*words: str) -> list[dict[str, str]]:
        header, *lines = hpc("list", *words).out.splitlines()
        return [dict(zip(header.split(), line.split(), strict=False)) for line in lines]

    return call


def ids(rows: list[dict[str, str]]) -> list[str]:
    return [row["RUN"] for row in rows]


@pytest.mark.parametrize(
    ("there", "words", "shown"),
    [
        (1, [], 1),
        (30, [], 30),
        (31, [], 30),
        (31, ["--all"], 31),
        (31, ["-n", "2"], 2),
        (31, ["-n", "40"], 31),
        (31, ["-n", "2", "--all"], 31),
    ],
)
def test_the_newest_thirty_are_shown_and_that_there_are_more_is_said(
    hpc, slurm, make_run, there, words, shown
):
    runs = [make_run(number, ended=True).run_id for number in range(there)]
    said = hpc("list", *words)
    assert [line.split()[1] for line in said.out.splitlines()[1:]] == runs[::-1][:shown]
    more = f"{shown} of {there} runs; --all shows them\n" if shown < there else ""
    assert said.err == more
    as_json = hpc("list", "--json", *words)
    assert [run["run"] for run in json.loads(as_json.out)["runs"]] == runs[::-1][:shown]
    assert as_json.err == more


def test_a_thousand_is_written_as_people_write_it(hpc, slurm, tmp_path):
    for number in range(1000):
        folder = tmp_path / "runs" / "name" / f"20250101-000000-{number:04x}"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text("{}")
    assert hpc("list", "-n", "1").err == "1 of 1,000 runs; --all shows them\n"


def test_only_the_events_of_the_runs_that_are_shown_are_read(hpc, slurm, make_run):
    runs = [make_run(number, ended=True) for number in range(32)]
    for run in runs[:2]:
        run.events.unlink()
        run.events.mkdir()  # reading it would be an error
    assert hpc("list").code == 0


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_number_of_runs_is_one_or_more(hpc, number):
    said = hpc("list", "-n", number)
    assert said.code == 2
    assert "Invalid value for '-n'" in said.err


def test_active_runs_are_found_however_old_they_are(hpc, slurm, make_run):
    runs = [make_run(number, ended=number not in (1, 2, 3)) for number in range(40)]
    slurm.says("1|RUNNING|None|N/A", "2|PENDING|Priority|N/A", "3|RUNNING|None|N/A")
    said = hpc("list", "--active")
    assert [line.split()[1] for line in said.out.splitlines()[1:]] == [
        run.run_id for run in runs[3:0:-1]
    ]
    assert said.err == ""
    said = hpc("list", "--active", "-n", "2")
    assert [line.split()[1] for line in said.out.splitlines()[1:]] == [
        run.run_id for run in runs[3:1:-1]
    ]
    assert said.err == "2 of 3 active runs; --all shows them\n"


def test_a_run_of_a_rendered_script_has_its_place_by_the_time_of_its_plan(slurm, make_run, listed):
    make_run(0, ended=True)
    make_run(1, ended=True, run_id="site-1")
    make_run(2, ended=True)
    assert [row["JOB"] for row in listed()] == ["2", "1", "0"]


def test_without_a_run_status_shows_the_newest(hpc, slurm, make_run):
    runs = [make_run(number, ended=True) for number in range(4)]
    assert json.loads(hpc("status", "--json").out)["run"] == runs[-1].run_id


def test_slurm_is_asked_once_for_all_jobs_and_not_at_all_for_runs_that_have_ended(
    slurm, make_run, listed
):
    for number in range(5):
        make_run(number, ended=number < 3)
    slurm.says("3|RUNNING|None|N/A", "4|PENDING|Priority|N/A")
    states = ["pending", "running", "completed", "completed", "completed"]
    assert [row["STATE"] for row in listed()] == states
    assert slurm.asked() == 1
    for run in listed("-n", "2"):
        assert run["STATE"] in ("pending", "running")
    assert slurm.asked() == 1


def test_ended_runs_need_no_slurm_at_all(slurm, make_run, listed):
    for number in range(3):
        make_run(number, ended=True)
    assert len(listed()) == 3
    assert slurm.asked() == 0


def test_a_job_whose_state_changed_is_seen_at_once(slurm, make_run, listed):
    run = make_run(7, ended=False)
    slurm.says("7|PENDING|Priority|N/A")
    assert listed()[0]["STATE"] == "pending"
    slurm.says("7|RUNNING|None|N/A")
    assert listed()[0]["STATE"] == "running"
    slurm.says()  # Slurm forgot it
    assert listed()[0]["STATE"] == "lost"
    end(run, time.time())
    assert listed()[0]["STATE"] == "completed"


def test_the_steps_of_a_running_job_go_on(slurm, make_run, listed):
    run = make_run(7, ended=False)
    slurm.says("7|RUNNING|None|N/A")
    for step in (3, 5):
        beat = Heartbeat(
            rank=0, node="n", pid=1, time=1.0, moved=1.0, phase="train", step=step, batch=9
        )
        write_heartbeat(run.attempt(0), beat)
        assert listed()[0]["STEP"] == str(step)


def test_new_runs_appear_and_removed_ones_go(slurm, make_run, listed):
    first, second = make_run(0, ended=True), make_run(1, ended=True)
    assert ids(listed()) == [second.run_id, first.run_id]
    first.plan.unlink()
    assert ids(listed()) == [second.run_id]


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["list", "--active"]])
def test_no_runs_and_no_folder_of_runs_are_no_error(hpc, slurm, words):
    said = hpc(*words, "--runs-dir", "missing")
    assert said.code == 0
    if "--json" in words:
        assert json.loads(said.out) == {"schema_version": 1, "runs": []}
    else:
        assert said.err.startswith("no runs; hpc-train submit CFG makes one")


def test_a_run_that_is_looked_for_in_no_folder_of_runs_is_said_not_to_be_there(hpc):
    assert hpc("status", "digits", "--runs-dir", "missing").code == 5
