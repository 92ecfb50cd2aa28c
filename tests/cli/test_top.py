"""`hpc-train top`: what the live page shows, what its keys do, and that nothing freezes it."""

from __future__ import annotations

import json
import shutil
import time

import pytest
from textual.widgets import DataTable, Input

from hpc_train import api
from hpc_train.cli.following import line_of
from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.top.live_page import LivePage
from hpc_train.top.run_screen import CancelQuestion, RunScreen
from hpc_train.top.run_watcher import RunWatcher
from tests.cli.conftest import beats, end, tell
from tests.cli.live_page import (
    HOUR_S,
    _often,
    piloted,
    plan_json,
    rows,
    shown,
    slurm_time,
    two_runs,
    until,
)

pytestmark = pytest.mark.slow

__all__ = ["_often", "plan_json", "two_runs"]


def answered(page: LivePage) -> bool:
    """Whether what Slurm said is drawn."""
    return any("Priority" in row["WHY"] for row in rows(page))


def test_a_row_tells_state_reason_start_pace_loss_time_left_limit_and_gpus(two_runs, tmp_path):
    async def steps(page, pilot):
        await until(pilot, lambda: answered(page))
        waits, trains = rows(page)
        assert waits["STATE"] == "pending"
        assert waits["WHY"].startswith("Priority; starts 20")
        assert trains == {
            **trains,
            "NAME": "name1",
            "STATE": "running",
            "STEP": "200/11000",
            "RATE": "1.0 it/s",
            "LOSS": "0.25",
            "LEFT": "3 h 00 min",
            "GPU": "85%",
            "WHY": "won't finish before its limit: will be requeued twice",
        }
        assert trains["LIMIT"].startswith("59 min")
        await pilot.press("down")
        await until(pilot, lambda: "train_loss 0.25" in shown(page, "#chosen"))
        assert "requeued twice" in shown(page, "#chosen")

    piloted(tmp_path / "runs", steps)


def test_status_list_and_follow_say_the_same_of_the_limit(two_runs, hpc):
    trains, _ = two_runs
    _, moving = line_of(api.Run.find(trains.run_id).status(), 1.0)
    assert moving.endswith("  won't finish before its limit: will be requeued twice")
    assert "requeued twice" in hpc("list").out
    said = hpc("status", trains.run_id).out
    assert "  limit      in 59 min" in said
    assert "won't finish before its limit: will be requeued twice" in said
    document = json.loads(hpc("status", trains.run_id, "--json").out)
    assert document["requeues_expected"] == 2
    assert 3400 < document["limit_in_s"] <= 3580


@pytest.mark.parametrize(("days", "is_limit"), [(2, True), (364, True), (365, False), (366, False)])
def test_a_job_without_a_limit_has_none(two_runs, slurm, hpc, days: int, is_limit: bool) -> None:
    """squeue tells a year, which was told as a limit in 8759 h 59 min."""
    trains, _ = two_runs
    end = slurm_time(days * 24 * HOUR_S - HOUR_S)
    slurm.says(f"1|RUNNING|None|{slurm_time(-HOUR_S)}|{end}")
    assert ("  limit " in hpc("status", trains.run_id).out) is is_limit
    document = json.loads(hpc("status", trains.run_id, "--json").out)
    assert (document["limit_in_s"] is not None) is is_limit


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_on_a_narrow_terminal_the_pace_stands_where_the_reason_would(two_runs, tmp_path, columns):
    trains, _ = two_runs
    beats(trains, time=time.time(), step=200, steps=300, steps_per_s=1.0, metrics={"loss": 0.25})

    async def steps(page, pilot):
        await until(pilot, lambda: answered(page))
        _, row = rows(page)
        assert row["STATE"] == "running"
        assert sum(len(word) + 2 for word in row.values()) <= columns
        assert page.query_one(DataTable).virtual_size.width <= columns
        told = " ".join(row.values())
        assert "1.0 it/s" in told
        assert ("0.25" in told) == (columns > 40)

    piloted(tmp_path / "runs", steps, columns=columns)


def test_what_goes_on_is_seen_and_what_waits_or_trains_stands_first(two_runs, make_run, tmp_path):
    trains, _ = two_runs
    make_run(9, ended=True)

    async def steps(page, pilot):
        await until(pilot, lambda: len(rows(page)) == 3)
        await until(pilot, lambda: next(row["STATE"] for row in rows(page)) == "pending")
        assert [row["STATE"] for row in rows(page)] == ["pending", "running", "completed"]
        beats(trains, time=time.time(), step=201, steps=300, steps_per_s=1.0)
        await until(pilot, lambda: rows(page)[1]["STEP"] == "201/300")
        make_run(12, ended=True)
        await until(pilot, lambda: len(rows(page)) == 4)
        end(trains, time.time())
        await until(pilot, lambda: [row["STATE"] for row in rows(page)].count("completed") == 3)
        shutil.rmtree(trains.path)
        await until(pilot, lambda: len(rows(page)) == 3)

    piloted(tmp_path / "runs", steps)


def test_a_slurm_that_does_not_answer_freezes_nothing_and_is_told(
    two_runs, slurm, tmp_path, monkeypatch
):
    monkeypatch.setattr("hpc_train.slurm.jobs.SQUEUE_S", 10.0)
    slurm.has("squeue", "exec sleep 60")

    async def steps(page, pilot):
        await until(pilot, lambda: len(rows(page)) == 2)
        began = time.monotonic()
        await pilot.press("a")
        await pilot.press("slash")
        assert page.query_one(Input).has_focus
        assert time.monotonic() - began < 9.5, "the keys waited for Slurm"
        await pilot.press("escape")
        await until(pilot, lambda: "Slurm does not answer" in shown(page, "#summary"))
        await until(pilot, lambda: "Slurm does not answer" in rows(page)[0]["WHY"])
        waits, trains = rows(page)
        assert waits["WHY"] == "Slurm does not answer; last known: pending"
        assert trains["WHY"].startswith("Slurm does not answer; last known: running, step 200")

    piloted(tmp_path / "runs", steps)


@pytest.mark.parametrize("answer", ["n", "escape", "x"])
def test_nothing_is_cancelled_unless_the_question_is_answered_by_yes(
    two_runs, slurm, tmp_path, answer
):
    slurm.has("scancel", f"echo $@ >> {tmp_path}/cancelled")

    async def steps(page, pilot):
        await until(pilot, lambda: len(rows(page)) == 2)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(page.screen, CancelQuestion))
        await pilot.press(answer, "q" if answer == "x" else "down")
        await pilot.pause(0.3)

    piloted(tmp_path / "runs", steps)
    assert not (tmp_path / "cancelled").exists()
    for run in two_runs:
        assert EventKind.CANCEL_REQUESTED not in [event.kind for event in read_events(run.events)]


def test_after_a_yes_the_run_under_the_cursor_is_cancelled(two_runs, slurm, tmp_path):
    slurm.has("scancel", f"echo $@ >> {tmp_path}/cancelled")

    async def steps(page, pilot):
        await until(pilot, lambda: answered(page))
        await pilot.press("down", "c")
        await until(pilot, lambda: isinstance(page.screen, CancelQuestion))
        assert "job 1), running at step 200?" in shown(page, "#ask")
        await pilot.press("y")
        await until(pilot, lambda: cancelled.exists() and bool(cancelled.read_text().strip()))

    cancelled = tmp_path / "cancelled"
    piloted(tmp_path / "runs", steps)
    assert cancelled.read_text().split()[-1] == "1"
    assert read_events(two_runs[0].events)[-1].kind is EventKind.CANCEL_REQUESTED


def test_a_sweep_that_goes_on_and_cannot_be_read_is_not_cancelled_and_ends_no_page(slurm, tmp_path):
    sweep = RunDir(tmp_path / "runs" / "swept" / "20260101-000000-abcd")
    sweep.path.mkdir(parents=True)
    (sweep.path / "sweep.json").write_text('{"schema_version": 0}')
    tell(sweep, time.time(), EventKind.SUBMITTED, job_id="7", backend="slurm")
    slurm.says("7|RUNNING|None|N/A|N/A")

    async def steps(page, pilot):
        await until(pilot, lambda: [row["STATE"] for row in rows(page)] == ["running"])
        await pilot.press("c")
        await until(pilot, lambda: isinstance(page.screen, CancelQuestion))
        await pilot.press("y")
        await until(pilot, lambda: page._notifications)
        (note,) = page._notifications
        assert "cannot be read" in note.message
        assert "scancel 7" in note.message

    piloted(tmp_path / "runs", steps)


def test_a_look_that_fails_is_told_and_the_next_one_is_tried(two_runs, tmp_path, monkeypatch):
    fails = RunWatcher._observe

    def fail(*_args: object) -> None:
        raise OSError(5, "Input/output error")

    async def steps(page, pilot):
        await until(pilot, lambda: len(rows(page)) == 2)
        monkeypatch.setattr(RunWatcher, "_observe", fail)
        await until(pilot, lambda: "Input/output error" in shown(page, "#summary"))
        assert len(rows(page)) == 2
        monkeypatch.setattr(RunWatcher, "_observe", fails)
        await until(pilot, lambda: "Input/output error" not in shown(page, "#summary"))

    piloted(tmp_path / "runs", steps)


def test_a_message_that_comes_while_the_page_is_taken_down_does_no_harm(two_runs, tmp_path):
    pages = []

    async def steps(page, pilot):
        await until(pilot, lambda: len(rows(page)) == 2)
        pages.append(page)

    piloted(tmp_path / "runs", steps)
    pages[0].on_data_table_row_highlighted()
    pages[0].redraw()


def test_what_slurm_says_to_a_cancel_is_shown_and_a_run_that_has_ended_is_not_asked_about(
    two_runs, slurm, make_run, tmp_path
):
    slurm.has("scancel", "echo 'scancel: error: Access denied [red]' >&2; exit 1")
    make_run(3, ended=True)

    async def steps(page, pilot):
        def told() -> str:
            return " ".join(note.message for note in page._notifications)

        await until(pilot, lambda: answered(page))
        await pilot.press("c")
        await until(pilot, lambda: isinstance(page.screen, CancelQuestion))
        await pilot.press("y")
        await until(pilot, lambda: "Access denied [red]" in told())
        await pilot.press("down", "down", "c")
        await until(pilot, lambda: "is completed already" in told())
        assert not isinstance(page.screen, CancelQuestion)

    piloted(tmp_path / "runs", steps)


def test_a_filter_takes_words_of_name_job_and_state_and_escape_shows_all_again(
    two_runs, make_run, tmp_path
):
    for number in range(3, 9):
        make_run(number, ended=True)

    async def steps(page, pilot):
        await until(pilot, lambda: len(rows(page)) == 8)
        await pilot.press("slash", *"name1 comp")
        await until(pilot, lambda: len(rows(page)) == 2)
        assert {row["NAME"] for row in rows(page)} == {"name1"}
        await pilot.press("enter")
        assert page.query_one(DataTable).has_focus
        await pilot.press("escape", "a")
        await until(pilot, lambda: len(rows(page)) == 2)
        assert "active only" in shown(page, "#summary")
        await pilot.press("slash", *"nothing-like-it")
        await until(pilot, lambda: shown(page, "#chosen") == "no such runs; Esc shows all")
        await pilot.press("escape")
        await until(pilot, lambda: len(rows(page)) == 8)

    piloted(tmp_path / "runs", steps)


def test_an_open_run_shows_its_history_and_each_log_and_what_is_new(two_runs, tmp_path):
    trains, _ = two_runs
    bar = "\r".join(f"{n}%" for n in range(100))
    trains.attempt(0).rank_log(0).write_text(f"\x1b[31mred\x1b[0m [b]text[/b]\n{bar}\n")
    trains.attempt(0).rank_log(10).write_text("of rank ten\n")
    trains.attempt(0).rank_log(2).write_text("of rank two\n")

    async def steps(page, pilot):
        await until(pilot, lambda: answered(page))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(page.screen, RunScreen))
        await until(pilot, lambda: "rank-0.log (1 of 3 logs" in shown(page, "#run"))
        lines = shown(page, "#run").splitlines()
        assert "requeued twice" in "".join(lines)
        assert lines[-2:] == ["  red [b]text[/b]", "  99%"]
        await pilot.press("right")
        await until(pilot, lambda: "of rank two" in shown(page, "#run"))
        await pilot.press("left", "left")
        await until(pilot, lambda: "of rank ten" in shown(page, "#run"))
        with trains.attempt(0).rank_log(10).open("a") as stream:
            stream.write("and more\n")
        await until(pilot, lambda: "and more" in shown(page, "#run"))
        await pilot.press("c")
        await until(pilot, lambda: isinstance(page.screen, CancelQuestion))
        await pilot.press("n", "escape")
        await until(pilot, lambda: len(page.screen_stack) == 1)

    piloted(tmp_path / "runs", steps)
