"""`hpc-train rm`: what goes, what stays, and what is said before."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpc_train.plan.from_config import make_plan
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir, checkpoint_name
from hpc_train.runs.lock import held_lock
from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from tests.cli.conftest import Slurm
from tests.plan.configs import config


@pytest.fixture
def make(tmp_path: Path, slurm: Slurm):
    """A run of job NUMBER, which has ended unless its state is None."""

    def made(
        number: int, *, name: str = "net", state: str | None = "failed", step: int = 0, **plan: str
    ) -> RunDir:
        run = RunDir(tmp_path / "runs" / name / f"20260101-00000{number}-000{number}")
        run.attempt(0).path.mkdir(parents=True)
        told = make_plan(config(name=name, **plan), workdir=tmp_path, python="python3")
        run.plan.write_text(told.to_json())
        run.latest.symlink_to("attempts/0")
        tell(run, EventKind.SUBMITTED, job_id=str(number), backend="slurm")
        tell(run, EventKind.ATTEMPT_STARTED, attempt=0, job_id=str(number), host="n")
        if state:
            tell(run, EventKind.RUN_ENDED, attempt=0, state=state, reason="so it is")
        if step:
            folder = run.checkpoints / checkpoint_name(step)
            folder.mkdir(parents=True)
            (folder / "manifest.json").write_text("{}")
            (folder / "model.pt").write_bytes(b"x" * 200_000)
        return run

    return made


def tell(run: RunDir, kind: EventKind, **data: object) -> None:
    append_event(run.events, Event(time.time(), kind, data))


def test_a_run_that_has_ended_goes_with_its_names_folder_and_is_known_no_more(hpc, make):
    run = make(1)
    said = hpc("rm", run.run_id, "--yes")
    assert said.code == 0
    assert "removed 1 run, " in said.out
    assert not run.path.parent.exists()
    assert run.path.parent.parent.exists()
    assert hpc("status", run.run_id).code == 5
    again = hpc("rm", run.run_id, "--yes")
    assert (again.code, "no run answers to" in again.err) == (5, True)


@pytest.mark.parametrize("word", ["id", "name", "path", "job", "beginning"])
def test_a_run_is_named_as_everywhere(hpc, make, word):
    run, other = make(1), make(2, name="other")
    words = {"id": run.run_id, "name": "net", "path": run.path, "job": "1"}
    assert hpc("rm", words.get(word, run.run_id[:-2]), "--yes").code == 0
    assert (run.path.exists(), other.path.exists()) == (False, True)


def test_before_anything_goes_it_is_said_what_and_how_much(hpc, make):
    runs = [make(1, step=1200), make(2)]
    said = hpc("rm", "net/*", "--dry-run")
    rows = [line.split() for line in said.out.splitlines()]
    assert [row[:3] for row in rows[1:3]] == [["net", run.run_id, "failed"] for run in runs[::-1]]
    assert rows[2][3:5] == ["step", "1200"]
    assert rows[3][:4] == ["would", "remove", "2", "runs,"]
    assert all(run.plan.exists() for run in runs)
    document = json.loads(hpc("rm", "net/*", "--dry-run", "--json").out)
    assert [row["step"] for row in document["removed"]] == [None, 1200]
    assert 200_000 < document["removed"][1]["bytes"] < document["bytes"]
    assert document["dry_run"] is True


@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
def test_a_run_that_goes_on_is_never_removed(hpc, make, slurm, state):
    run, ended = make(1, state=None), make(2)
    slurm.says(f"1|{state}|None|N/A")
    slurm.asked()
    said = hpc("rm", run.run_id, ended.run_id, "--yes")
    assert said.code == 1
    assert f"error: net ({run.run_id}) is {state.lower()}" in said.err
    assert f"fix: hpc-train cancel {run.run_id}" in said.err
    assert run.plan.exists()
    assert ended.plan.exists(), "nothing is removed where one that is named may not be"
    assert slurm.asked() == 1
    said = hpc("rm", "net*", "--yes")
    assert f"kept: {run.run_id} is {state.lower()}" in said.err
    assert (said.code, run.plan.exists(), ended.path.exists()) == (0, True, False)


def test_a_run_of_which_slurm_says_nothing_is_not_removed(hpc, make, slurm):
    run = make(1, state=None)
    slurm.has("squeue", "exit 1")
    assert hpc("rm", run.run_id, "--yes").code == 1
    assert run.plan.exists()


def test_signs_of_life_keep_a_run_that_the_scheduler_does_not_know(hpc, make, slurm):
    run = make(1, state=None)
    old = time.time() - 1000
    lines = [json.loads(line) for line in run.events.read_text().splitlines()]
    text = "".join(json.dumps({**line, "time": old}) + "\n" for line in lines)
    run.events.write_text(text)
    now = time.time()
    beat = Heartbeat(rank=0, node="n", pid=1, time=now, moved=now, phase="train", step=1, batch=1)
    write_heartbeat(run.attempt(0), beat)
    assert "gives signs of life" in hpc("rm", run.run_id, "--yes").err
    os.utime(run.attempt(0).heartbeat(0), (old, old))
    with held_lock(run.lock, "a supervisor"):
        assert "gives signs of life" in hpc("rm", run.run_id, "--yes").err
    assert run.plan.exists()
    assert hpc("rm", run.run_id, "--yes").code == 0


def test_the_last_checkpoint_goes_with_yes_alone(hpc, make):
    with_one, without = make(1, step=40), make(2)
    said = hpc("rm", "net/*")
    assert said.code == 2
    assert f"nothing was removed: {with_one.run_id} would lose its last checkpoint" in said.err
    assert with_one.plan.exists()
    assert without.plan.exists()
    assert hpc("rm", "net/*", "--yes").code == 0
    assert not with_one.path.exists()


def test_without_a_terminal_nobody_can_answer(hpc, make, monkeypatch):
    run = make(1)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    said = hpc("rm", run.run_id)
    assert (said.code, "nobody is there to ask" in said.err) == (2, True)
    assert hpc("rm", run.run_id, "--json").code == 2
    assert run.plan.exists()


def asked_on_a_terminal(word: str, folder: Path) -> tuple[subprocess.Popen[str], int]:
    """`rm WORD`, and where its question is answered."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hpc_train.cli", "rm", word],
        cwd=folder,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.close(theirs)
    return process, ours


@pytest.mark.parametrize(("answer", "goes"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_the_question_on_a_terminal_is_answered(hpc, make, tmp_path, answer, goes):
    run = make(1)
    process, ours = asked_on_a_terminal(run.run_id, tmp_path)
    os.write(ours, answer.encode())
    said, _ = process.communicate(timeout=150)
    os.close(ours)
    assert "remove 1 run, " in said
    assert (process.returncode == 0, run.path.exists()) == (goes, not goes)


def test_a_run_that_begins_while_the_question_stands_is_not_removed(make, slurm, tmp_path):
    runs = [make(1), make(2)]
    process, ours = asked_on_a_terminal("net*", tmp_path)
    assert process.stdout is not None
    asked = ""
    while "remove 2 runs, " not in asked and (character := process.stdout.read(1)):
        asked += character
    tell(runs[1], EventKind.SUBMITTED, job_id="9", backend="slurm")
    slurm.says("9|PENDING|None|N/A")
    os.write(ours, b"y\n")
    said, _ = process.communicate(timeout=150)
    os.close(ours)
    assert process.returncode == 1
    assert f"error: nothing was removed: net ({runs[1].run_id}) is pending by now" in said
    assert all(run.plan.exists() for run in runs)


def test_a_name_of_several_runs_asks_for_ids_or_a_pattern(hpc, make):
    runs = [make(1), make(2), make(3)]
    said = hpc("rm", "net", "--yes")
    assert said.code == 2
    assert "3 runs are named net: " in said.err
    assert "fix: name them by their ids, or all of them by 'net/*'" in said.err
    assert all(run.plan.exists() for run in runs)
    assert hpc("rm", "nothing*", "--yes").code == 5


@pytest.mark.parametrize("words", ["--state failed", "--state FAILED net/*", "* --state failed"])
def test_those_of_a_state_go_alone(hpc, make, words):
    """As `list --state` shows them."""
    kept, left = make(1, state="completed"), make(2, state="cancelled")
    gone = make(3, state="failed")
    said = hpc("rm", *words.split(), "--yes", "--json")
    assert [it["run"] for it in json.loads(said.out)["removed"]] == [gone.run_id]
    assert [it.path.exists() for it in (kept, left, gone)] == [True, True, False]


def test_no_run_and_no_state_is_no_wish_to_remove_all(hpc, make):
    run = make(1)
    said = hpc("rm", "--yes")
    assert (said.code, run.path.exists()) == (2, True)
    assert "fix: name it by its id; several: --state failed, or 'PATTERN*'" in said.err


def test_no_link_is_followed_out_of_a_run_nor_to_one(hpc, make, tmp_path):
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "data").write_text("all of it")
    run, linked = make(1), make(2)
    (run.path / "snapshot").mkdir()
    (run.path / "snapshot" / "data").symlink_to(outside)
    (run.path / "more").symlink_to(outside)
    moved = tmp_path / "elsewhere"
    linked.path.rename(moved)
    linked.path.symlink_to(moved)
    assert hpc("rm", run.run_id, "--yes").code == 0
    said = hpc("rm", linked.run_id, "--yes")
    assert said.code == 1
    assert f"is a link to {moved}" in said.err
    link = tmp_path / "link"
    link.symlink_to(moved)
    assert f"is a link to {moved}" in hpc("rm", link, "--yes").err
    assert (moved / "plan.json").exists()
    assert (outside / "data").read_text() == "all of it"


@pytest.mark.parametrize("gone", [["plan.json"], ["events.jsonl"], ["attempts", "events.jsonl"]])
def test_what_is_left_of_a_half_deleted_run_goes(hpc, make, gone):
    run = make(1)
    for name in gone:
        path = run.path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert hpc("rm", run.path, "--yes").code == 0
    assert not run.path.exists()


def test_a_folder_that_is_no_run_is_not_touched(hpc, make, tmp_path):
    make(1)
    project = tmp_path / "project"
    (project / "attempts").mkdir(parents=True)
    assert hpc("rm", project, "--yes").code == 5
    assert hpc("rm", tmp_path / "runs", "--yes").code == 5
    assert hpc("rm", tmp_path / "runs" / "net", "--yes").code == 5
    assert (project / "attempts").exists()


@pytest.mark.parametrize("files", [["plan.json"], ["sweep.json"], ["plan.json", "events.jsonl"]])
def test_a_folder_with_a_plan_of_something_else_is_not_touched(hpc, make, tmp_path, files):
    make(1)
    project = tmp_path / "infrastructure"
    project.mkdir()
    (project / "thesis.txt").write_text("all of it")
    for name in files:
        (project / name).write_text('{"resources": []}')
    said = hpc("rm", project, "--yes")
    assert said.code == 5
    assert f"{project} is in no folder of runs, and its plan is none that" in said.err
    assert sorted(it.name for it in project.iterdir()) == sorted([*files, "thesis.txt"])


@pytest.mark.parametrize("word", [".", "..", "/", "", "~", "runs", "runs/net", "runs/net/.."])
def test_no_folder_of_runs_nor_above_one_is_removed(hpc, make, tmp_path, monkeypatch, word):
    run = make(1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "attempts").mkdir()  # a run's name may be that of a run's file
    said = hpc("rm", word, "--yes")
    assert said.code == 5
    assert f"no run answers to {word!r}" in said.err
    assert hpc("rm", f"{run.path}/..", "--yes").code == 5
    assert run.path.exists()


def test_a_run_that_was_moved_out_of_its_folder_is_removed(hpc, make, tmp_path):
    moved = make(1).path.rename(tmp_path / "archived")
    assert hpc("rm", moved, "--yes").code == 0
    assert not moved.exists()


@pytest.mark.parametrize("option", ["-rf", "-r", "-f", "--force"])
def test_what_is_typed_for_rm_of_the_shell_is_told(hpc, make, option):
    run = make(1)
    assert "write --yes" in hpc("rm", option, run.run_id).err
    assert "write '*'" in hpc("rm", "--all").err
    assert run.path.exists()


def test_a_removal_that_stops_half_way_leaves_a_run_that_can_be_removed(hpc, make, monkeypatch):
    run = make(1, step=4)

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("hpc_train.backends.remove_runs.shutil.rmtree", refused)
        said = hpc("rm", run.run_id, "--yes")
    assert said.code == 1
    assert "cannot be removed: Permission denied" in said.err
    assert f"fix: correct that, and again: hpc-train rm {run.run_id}" in said.err
    assert run.plan.exists()
    assert hpc("rm", run.run_id, "--yes").code == 0


def test_a_run_that_goes_on_keeps_those_that_it_names(hpc, make, slurm):
    source = make(1)
    user = make(2, name="fine", init_from=str(source.checkpoints / "step-000000001"))
    assert hpc("rm", source.run_id, "--dry-run").code == 0
    waiting = make(3, name="next", state=None)
    append_event(waiting.events, Event(time.time(), EventKind.WAITS_FOR, {"run": source.run_id}))
    slurm.says("3|PENDING|Dependency|N/A")
    said = hpc("rm", source.run_id, "--yes")
    assert said.code == 1
    assert f"is needed by {waiting.run_id}, which is pending" in said.err
    assert source.plan.exists()
    assert hpc("rm", source.run_id, user.run_id, "--dry-run").code == 1
    said = hpc("rm", "*", "--yes")
    assert f"kept: {source.run_id} is needed by {waiting.run_id}" in said.err
    left = (source.plan.exists(), user.plan.exists(), waiting.plan.exists())
    assert left == (True, False, True), "also where one pattern means both"


def test_the_folder_that_one_is_in_stays(hpc, make, monkeypatch):
    run = make(1)
    monkeypatch.chdir(run.path)
    assert "is the folder that you are in" in hpc("rm", run.path, "--yes").err
    assert run.plan.exists()


def test_a_folder_of_runs_that_is_a_link_is_as_any_other(hpc, make, tmp_path):
    run, other = make(1), make(2)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "runs").rename(tmp_path / "scratch" / "runs")
    (tmp_path / "runs").symlink_to(tmp_path / "scratch" / "runs")
    text = run.plan.read_text()
    run.plan.write_text(text.replace(f'"workdir": "{tmp_path}"', f'"workdir": "{run.path}/snap"'))
    said = hpc("rm", run.path, "--yes")
    assert said.code == 0, "a run that names its own folder does not keep itself"
    assert (run.path.exists(), other.plan.exists()) == (False, True)
