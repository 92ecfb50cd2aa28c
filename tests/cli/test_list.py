"""`hpc-train list`: which runs it shows, what it reads for them, and how often it asks Slurm."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from tests.cli.conftest import beats, end


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


@pytest.mark.parametrize("command", ["list", "du"])
@pytest.mark.parametrize("words", [["-n", "2", "--all"], ["--all", "-n", "30"]])
def test_so_many_and_all_at_once_are_refused(hpc, slurm, make_run, command, words):
    make_run(1, ended=True)
    said = hpc(command, *words)
    assert (said.code, said.out) == (2, "")
    assert "-n" in said.err
    assert "leave one of them out" in said.err


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


@pytest.mark.parametrize(
    ("state", "left", "why"),
    [
        ("RUNNING", "40s", ""),
        ("SUSPENDED", "-", "Slurm has suspended the job"),
        ("STOPPED", "-", "somebody has stopped the job"),
    ],
)
def test_a_job_that_does_not_train_on_has_a_reason_and_no_time_left(
    hpc, slurm, make_run, state, left, why
):
    run = make_run(7, ended=False)
    beats(run, step=5, steps=45, steps_per_s=1.0)
    slurm.says(f"7|{state}|None|N/A")
    (row,) = hpc("list").out.splitlines()[1:]
    assert f" {left} " in row.replace("40 s", "40s")
    assert why in row


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
def test_no_runs_are_no_error(hpc, slurm, words, tmp_path):
    (tmp_path / "empty").mkdir()
    said = hpc(*words, "--runs-dir", "empty")
    assert said.code == 0
    if "--json" in words:
        assert json.loads(said.out) == {"schema_version": 1, "runs": []}
    else:
        assert said.err == f"no runs in {tmp_path}/empty; hpc-train submit CFG makes one\n"


@pytest.mark.parametrize("words", ["list", "list --active", "status digits", "cancel digits"])
@pytest.mark.parametrize(("folder", "what"), [("missing", "no such folder"), ("f", "a file")])
def test_a_folder_of_runs_that_is_none_is_named(hpc, slurm, words, folder, what, tmp_path):
    (tmp_path / "f").touch()
    said = hpc(*words.split(), "--runs-dir", folder)
    assert said.code == 5
    assert f"--runs-dir {folder}: " in said.err.splitlines()[0]
    assert what in said.err


@pytest.mark.parametrize("words", ["list", "status name1", "du"])
def test_the_project_in_the_place_of_its_runs_is_told(hpc, slurm, make_run, words, tmp_path):
    make_run(1, ended=True)
    said = hpc(*words.split(), "--runs-dir", ".")
    assert said.code == 5
    assert "--runs-dir .: there is no run in it" in said.err
    assert "its runs lie in runs: --runs-dir runs" in said.err
    assert hpc(*words.split(), "--runs-dir", "runs").code == 0


def test_the_time_that_a_training_still_needs_is_shown(slurm, make_run, listed):
    run, other = make_run(7, ended=False), make_run(8, ended=False)
    slurm.says("7|RUNNING|None|N/A", "8|RUNNING|None|N/A")
    beats(run, step=40, steps=100, steps_per_s=2.0)
    beats(other, step=40, steps_per_s=2.0)  # of a stream nobody knows the end
    assert [(row["STEP"], row["LEFT"]) for row in listed()] == [("40", "-"), ("40/100", "30")]


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        (["--state", "completed"], ["2", "0"]),
        (["--state", "running"], ["3", "1"]),
        (["--state", "running", "--state", "pending"], ["4", "3", "1"]),
        (["--state", "RUNNING"], ["3", "1"]),
        (["--state", "R", "--state", "pd"], ["4", "3", "1"]),
        (["--state", "Timeout"], []),
        (["--state", "failed"], []),
        (["--name", "name1"], ["4", "1"]),
        (["--name", "name[12]"], ["4", "2", "1"]),
        (["--name", "name1", "--state", "running"], ["1"]),
        (["--name", "name"], []),  # no pattern: the whole name
        (["--state", "running", "-n", "1"], ["3"]),
        (["--sort", "name"], ["3", "0", "4", "1", "2"]),
        (["--sort", "state"], ["4", "3", "1", "2", "0"]),
        (["--sort", "step"], ["1", "3", "2", "0", "4"]),
        (["--sort", "left"], ["3", "1", "4", "2", "0"]),
        (["--sort", "newest"], ["4", "3", "2", "1", "0"]),
        (["--sort", "name", "-n", "2"], ["3", "4"]),  # the newest two, and then by name
    ],
)
def test_runs_are_chosen_and_ordered_as_asked(slurm, make_run, listed, hpc, words, jobs):
    runs = [make_run(number, ended=number in (0, 2)) for number in range(5)]
    slurm.says("1|RUNNING|None|N/A", "3|RUNNING|None|N/A", "4|PENDING|Priority|N/A")
    beats(runs[1], step=50, steps=100, steps_per_s=1.0)
    beats(runs[3], step=20, steps=30, steps_per_s=1.0)
    if jobs:
        assert [row["JOB"] for row in listed(*words)] == jobs
    else:
        assert hpc("list", *words).err == "no such runs; hpc-train list --all shows all\n"


def test_a_run_is_found_by_its_name_behind_any_number_of_others_and_only_its_events_are_read(
    hpc, slurm, make_run
):
    runs = [make_run(number, ended=True) for number in range(40)]
    for number in range(40):
        if number % 3 != 1:
            runs[number].events.unlink()
            runs[number].events.mkdir()  # reading it would be an error
    shown = json.loads(hpc("list", "--json", "--name", "name1", "-n", "2").out)["runs"]
    assert [run["job_id"] for run in shown] == ["37", "34"]


def test_a_state_that_there_is_not_is_refused_with_those_that_there_are(hpc):
    said = hpc("list", "--state", "dead")
    assert said.code == 2
    assert "'lost'" in said.err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "sweep.json cannot be read: Expecting value"),
        ('{"schema_version": 99}', "sweep.json cannot be read: schema_version 99"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--json",), ("--all",)])
def test_a_sweep_that_this_version_cannot_read_is_a_line_among_the_others(
    hpc, slurm, make_run, tmp_path, text, why, words
) -> None:
    run = make_run(2, ended=False)
    sweep = tmp_path / "runs" / "grid" / "20260101-000000-abcd"
    sweep.mkdir(parents=True)
    (sweep / "sweep.json").write_text(text)
    said = hpc("list", *words)
    assert run.run_id in said.out
    assert why in said.out
    assert said.code == 0


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_run_whose_history_cannot_be_read_is_a_line_among_the_others(
    hpc, slurm, make_run, words
) -> None:
    whole, broken = make_run(2, ended=True), make_run(3, ended=True)
    broken.events.unlink()
    broken.events.mkdir()  # root may read every file
    said = hpc("list", *words)
    assert whole.run_id in said.out
    assert f"{broken.events} cannot be read: Is a directory" in said.out
    alone = hpc("status", broken.run_id)
    assert (alone.code, len(alone.err.splitlines())) == (1, 2)
    assert "cannot be read: Is a directory" in alone.err
    assert "correct its permissions" in alone.err


@pytest.mark.parametrize(
    ("typed", "message", "fix"),
    [
        ("failed,lost", "one state each time", "write --state failed --state lost"),
        ("broken", "'broken' is not one of 'pending', 'running',", "hpc-train list --help"),
    ],
)
def test_a_state_that_is_none_is_told(hpc, typed, message, fix):
    said = hpc("list", "--state", typed)
    assert said.code == 2
    assert message in said.err
    assert fix in said.err
