"""`hpc-train top`: what the live page shows, what its keys do, and that nothing freezes it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.widgets import DataTable, Input, Static

from hpc_train import api
from hpc_train.cli.following import line_of
from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.top import run_watcher
from hpc_train.top.live_page import LivePage
from hpc_train.top.run_screen import CancelQuestion, RunScreen
from hpc_train.top.run_watcher import RunWatcher
from hpc_train.top.watched_run import chosen
from tests.cli.conftest import DIGITS, beats, end, tell
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow

HOUR_S = 3600.0
WIDE = 220


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at as often as a test can: the pauses are tested by themselves."""
    monkeypatch.setattr(run_watcher, "EVERY_S", 0.05)
    monkeypatch.setattr(run_watcher, "SHARE", 100.0)


@pytest.fixture(scope="module")
def plan_json() -> str:
    return api.plan(api.load(DIGITS, nodes=2, gpus=2), for_script=True).to_json()


def slurm_time(in_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + in_s))


def rows(page: LivePage) -> list[dict[str, str]]:
    """The table that is drawn, by the header's words."""
    table = page.query_one(DataTable)
    names = [column.label.plain for column in table.ordered_columns]
    drawn = [table.get_row(row.key) for row in table.ordered_rows]
    return [{n: cell.plain for n, cell in zip(names, row, strict=True)} for row in drawn]


def answered(page: LivePage) -> bool:
    """Whether what Slurm said is drawn."""
    return any("Priority" in row["WHY"] for row in rows(page))


def shown(page: LivePage, where: str) -> str:
    return str(page.screen.query_one(where, Static).content)


async def until(pilot, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came so far"
        await pilot.pause(0.02)


def piloted(
    runs: Path, steps: Callable[..., Awaitable[None]], *, columns: int = WIDE, **options: object
) -> None:
    async def body() -> None:
        page = LivePage(runs, **options)
        async with page.run_test(size=(columns, 24), notifications=True) as pilot:
            await steps(page, pilot)

    asyncio.run(body())


@pytest.fixture
def two_runs(slurm, make_run, plan_json) -> tuple[RunDir, RunDir]:
    """One that trains past its limit, and one that waits, by Slurm's word."""
    trains, waits = make_run(1, ended=False), make_run(2, ended=False)
    for run in (trains, waits):
        run.plan.write_text(plan_json)
    waits.events.write_text(waits.events.read_text().splitlines()[0] + "\n")
    beats(
        trains,
        time=time.time(),
        step=200,
        steps=200 + round(3 * HOUR_S),
        steps_per_s=1.0,
        metrics={"val_acc": 0.5, "train_loss": 0.25},
    )
    trains.monitor.mkdir()
    gpus = [{"index": 0, "use_percent": 80}, {"index": 1, "use_percent": 90}]
    line = json.dumps({"time": time.time(), "gpus": gpus})
    (trains.monitor / "node1.jsonl").write_text(f"{line}\n{line[:20]}")
    slurm.says(
        f"1|RUNNING|None|{slurm_time(-HOUR_S)}|{slurm_time(HOUR_S - 20)}",
        f"2|PENDING|Priority|{slurm_time(HOUR_S)}|N/A",
    )
    return trains, waits


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


def test_slurm_is_asked_once_however_often_one_looks_and_again_after_ten_seconds(
    two_runs, slurm, tmp_path, monkeypatch
):
    watched = RunWatcher(tmp_path / "runs")
    watched.look_once()
    for _ in range(20):
        list(watched.passes())
    assert slurm.asked() == 1
    assert run_watcher.ASK_SLURM_EVERY_S >= 10
    later = time.monotonic() + run_watcher.ASK_SLURM_EVERY_S
    monkeypatch.setattr(run_watcher.time, "monotonic", lambda: later)
    watched.look_once()
    assert slurm.asked() == 1


def test_runs_that_have_ended_need_no_slurm(slurm, make_run, tmp_path):
    for number in range(3):
        make_run(number, ended=True)
    assert len(RunWatcher(tmp_path / "runs").look_once().rows) == 3
    assert slurm.asked() == 0


def test_a_slurm_that_does_not_answer_freezes_nothing_and_is_told(two_runs, slurm, tmp_path):
    slurm.has("squeue", "exec sleep 60")

    async def steps(page, pilot):
        await until(pilot, lambda: len(rows(page)) == 2)
        began = time.monotonic()
        await pilot.press("a")
        await pilot.press("slash")
        assert page.query_one(Input).has_focus
        assert time.monotonic() - began < 1.9, "the keys waited for Slurm"
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
        await until(pilot, (tmp_path / "cancelled").exists)

    piloted(tmp_path / "runs", steps)
    assert (tmp_path / "cancelled").read_text().split()[-1] == "1"
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


def test_what_slurm_did_not_answer_is_no_news_once_all_have_ended(two_runs, slurm, tmp_path):
    slurm.has("squeue", "exit 1")
    watched = RunWatcher(tmp_path / "runs")
    assert any("Slurm does not answer" in note for note in watched.look_once().notes)
    for run in two_runs:
        end(run, time.time())
    assert watched.look_once().notes == ()


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


def test_whatever_a_folder_holds_its_row_is_there_or_a_line_says_so(slurm, make_run, tmp_path):
    torn, unreadable, older, whole = (make_run(number, ended=True) for number in range(4))
    with torn.events.open("a") as stream:
        stream.write('{"time": 1, "eve')
    unreadable.events.unlink()
    unreadable.events.mkdir()
    older.plan.write_text('{"schema_version": 0}')
    tell(older, time.time(), EventKind.ATTEMPT_STARTED, attempt=1, nodes=3)  # no list of names
    half = make_run(4, ended=True)
    half.plan.unlink()
    sweep = tmp_path / "runs" / "swept" / "20260101-000000-abcd"
    sweep.mkdir(parents=True)
    (sweep / "sweep.json").write_text('{"schema_version": 0}')
    snapshot = RunWatcher(tmp_path / "runs").look_once()
    found = {row.status.run: row.status for row in snapshot.rows}
    assert found[torn.run_id].state == found[whole.run_id].state == "completed"
    why = f"{unreadable.events} cannot be read: Is a directory"
    assert found[unreadable.run_id].reason == why
    assert found[older.run_id].reason.startswith("cannot be read: ")
    assert "schema_version 0" in found[sweep.name].reason
    (note,) = snapshot.notes
    assert note == f"half deleted, or not yours to read: {half.path}"


@pytest.mark.parametrize(
    "name",
    ["[red]bold[&red]", "<script>alert(1)<script>", "a\x1b[2Jb\nc", "é" * 60, "[@click=app.quit]x"],
)
def test_a_name_is_text_and_nothing_else(slurm, make_run, tmp_path, name):
    make_run(1, ended=True).path.parent.rename(tmp_path / "runs" / name)

    async def steps(page, pilot):
        await until(pilot, lambda: rows(page))
        drawn = rows(page)[0]["NAME"]
        assert drawn.isprintable()
        assert [a for a, b in zip(drawn, name, strict=False) if a != b] in ([], [" "] * 2)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(page.screen, RunScreen))
        assert "\x1b" not in shown(page, "#run")

    piloted(tmp_path / "runs", steps)


def test_no_runs_are_said_with_what_makes_one(slurm, tmp_path):
    (tmp_path / "runs").mkdir()

    async def steps(page, pilot):
        await until(pilot, lambda: "no runs in" in shown(page, "#summary"))
        await pilot.press("enter", "c", "down")

    piloted(tmp_path / "runs", steps)


def test_the_first_rows_are_there_before_all_runs_have_been_read(slurm, make_run, tmp_path):
    for number in range(80):
        make_run(number, ended=True)
    first, *_, last = list(RunWatcher(tmp_path / "runs").passes())
    assert (len(first.rows), first.unread) == (30, 50)
    assert first.rows[0].status.job_id == "79"
    assert (len(last.rows), last.unread) == (80, 0)


def test_what_has_ended_is_not_read_again_and_what_was_resumed_is(
    slurm, make_run, tmp_path, monkeypatch
):
    runs = [make_run(number, ended=True) for number in range(40)]
    for run in runs:
        os.utime(run.events, (1, 1))
    watched = RunWatcher(tmp_path / "runs")
    watched.look_once()
    read = []
    really = run_watcher.observe_all
    monkeypatch.setattr(
        run_watcher, "observe_all", lambda some, *rest: read.extend(some) or really(some, *rest)
    )
    watched.look_once()
    assert read == []
    tell(runs[0], time.time(), EventKind.SUBMITTED, job_id="0", backend="slurm")
    watched.look_once()
    assert [run.run_id for run in read] == [runs[0].run_id] * len(read)
    assert read


def test_what_has_ended_just_now_is_read_once_whatever_slurm_says_of_others(
    slurm, make_run, tmp_path, monkeypatch
):
    monkeypatch.setattr(run_watcher, "MOST_FRESH", 10)
    runs = [make_run(number, ended=True) for number in range(100)]
    make_run(100, ended=False)
    slurm.says("100|RUNNING|None|N/A|N/A")
    watched = RunWatcher(tmp_path / "runs")
    watched.look_once()
    read, looked = [], []
    really, signature = run_watcher.observe_all, run_watcher._signature
    monkeypatch.setattr(
        run_watcher, "observe_all", lambda some, *rest: read.extend(some) or really(some, *rest)
    )
    monkeypatch.setattr(
        run_watcher, "_signature", lambda it: looked.append(it.run_id) or signature(it)
    )
    watched._ask_at = 0.0
    watched.look_once()
    assert slurm.asked() == 2
    assert {run.name for run in read} == {"name1"}, "the one that trains, by the new answer"
    assert len(looked) < 2 * (1 + 10 + 30 + run_watcher.LOOKED_AT) + 1
    tell(runs[99], time.time(), EventKind.SUBMITTED, job_id="99", backend="slurm")
    newest = watched.look_once()
    assert runs[99].run_id in [row.status.run for row in newest.active]


def test_a_pass_that_took_long_is_followed_by_a_longer_pause(
    slurm, make_run, tmp_path, monkeypatch
):
    make_run(1, ended=True)
    monkeypatch.setattr(run_watcher, "EVERY_S", 2.0)
    monkeypatch.setattr(run_watcher, "SHARE", 0.008)
    watched, pauses = RunWatcher(tmp_path / "runs"), []
    watched.look_once()
    clock = iter([0.0, 0.001, 0.0, 0.05, 0.0, 100.0])
    monkeypatch.setattr(run_watcher.time, "process_time", lambda: next(clock))

    def wait(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 6:
            watched.stop()

    monkeypatch.setattr(watched._stop, "wait", wait)
    watched._run()
    assert pauses == [2.0, 0.0, 2.0, pytest.approx(0.05 / 0.008 - 2), 2.0, 15.0]


@pytest.mark.parametrize("words", [[], ["--active"], ["--filter", "pending"]])
def test_in_a_pipe_it_is_one_plain_table(two_runs, make_run, hpc, words):
    make_run(5, ended=True)
    said = hpc("top", "--runs-dir", "runs", *words)
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].split() == [
        "NAME",
        "STATE",
        "STEP",
        "RATE",
        "LOSS",
        "LEFT",
        "LIMIT",
        "GPU",
        "RUN",
        "WHY",
    ]
    assert len(lines) - 1 == {0: 3, 1: 2, 2: 1}[len(words)]
    assert "\x1b" not in said.out
    assert "Priority; starts " in said.out


@pytest.mark.parametrize("option", [["--active"], ["--filter", "digits"]])
def test_what_the_page_has_a_field_for_is_not_passed_over(hpc, option):
    said = hpc("top", "--web", *option)
    assert said.code == 2
    assert said.err.splitlines() == [
        f"error: {option[0]} is for the terminal",
        "  fix: hpc-train top --web, whose page has a filter",
    ]


def test_a_folder_that_is_none_and_a_port_without_a_page_are_refused_in_two_lines(hpc):
    assert hpc("top", "--runs-dir", "nowhere").code == 5
    said = hpc("top", "--port", "80")
    assert said.code == 2
    assert said.err.splitlines() == [
        "error: --port is for --web",
        "  fix: hpc-train top --web --port PORT",
    ]


@pytest.mark.parametrize(("library", "words"), [("textual", []), ("aiohttp", ["--web"])])
def test_without_the_extra_two_lines_name_it(make_run, slurm, tmp_path, library, words):
    make_run(1, ended=True)
    stub = tmp_path / "stubs"
    stub.mkdir()
    (stub / f"{library}.py").write_text(
        f"raise ModuleNotFoundError('No module named {library}', name={library!r})\n"
    )
    terminal = Terminal("top", "--runs-dir", str(tmp_path / "runs"), *words, PYTHONPATH=str(stub))
    assert terminal.ends() == 1
    assert terminal.text.split("\r\n")[:2] == [
        f"error: top needs {library}, which is not installed",
        "  fix: pip install 'hpc-train[top]'",
    ]
    assert "Traceback" not in terminal.text


def test_q_ends_it_and_leaves_the_terminal_as_it_was(two_runs, tmp_path):
    terminal = Terminal("top", "--runs-dir", str(tmp_path / "runs"))
    terminal.until("name1")
    terminal.press("q")
    assert terminal.ends() == 0
    assert terminal.raw.rindex("\x1b[?1049l") > terminal.raw.rindex("\x1b[?1049h")


@pytest.mark.parametrize("prefix", [(), ("env", "--ignore-signal=HUP")])
def test_a_terminal_that_is_closed_ends_it(two_runs, tmp_path, prefix):
    terminal = Terminal("top", "--runs-dir", str(tmp_path / "runs"), prefix=prefix)
    terminal.until("name1")
    terminal.close()
    assert terminal.ends() == -signal.SIGHUP


def test_without_colour_nothing_is_coloured(two_runs, tmp_path):
    terminal = Terminal("top", "--runs-dir", str(tmp_path / "runs"), NO_COLOR="1")
    terminal.until("name1")
    terminal.press("q")
    terminal.ends()
    colours = {
        "30",
        "31",
        "32",
        "33",
        "34",
        "35",
        "36",
        "37",
        "38",
        "40",
        "41",
        "42",
        "43",
        "44",
        "48",
        "90",
        "97",
    }
    codes = {code for it in terminal.raw.split("\x1b[") for code in it.partition("m")[0].split(";")}
    assert codes & colours == set()


def test_a_terminal_that_can_nothing_gets_the_plain_table(two_runs, tmp_path):
    terminal = Terminal("top", "--runs-dir", str(tmp_path / "runs"), TERM="dumb")
    assert terminal.ends() == 0
    assert "\x1b[?1049h" not in terminal.raw
    assert "name1" in terminal.text


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_in_tmux_it_shows_the_runs_takes_keys_and_ends(two_runs, tmp_path, columns, lines):
    socket = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]
    command = [sys.executable, "-m", "hpc_train.cli", "top", "--runs-dir", str(tmp_path / "runs")]
    size = ["-x", str(columns), "-y", str(lines)]
    subprocess.run([*socket, "new-session", "-d", *size, *command], check=True)

    def screen() -> str:
        asked = subprocess.run([*socket, "capture-pane", "-p"], capture_output=True, text=True)
        return asked.stdout

    def wait_for(words: str) -> None:
        deadline = time.monotonic() + 60
        while words not in screen():
            assert time.monotonic() < deadline, screen()
            time.sleep(0.1)

    try:
        wait_for("Priority")
        assert "200/11000" in screen()
        assert max(map(len, screen().splitlines())) <= columns
        subprocess.run([*socket, "send-keys", "Down", "Enter"], check=True)
        wait_for("attempt 0")
        subprocess.run([*socket, "send-keys", "Escape"], check=True)
        wait_for("NAME")
        subprocess.run([*socket, "send-keys", "q"], check=True)
        deadline = time.monotonic() + 60
        while subprocess.run([*socket, "has-session"], capture_output=True).returncode == 0:
            assert time.monotonic() < deadline, "it goes on"
            time.sleep(0.1)
    finally:
        subprocess.run([*socket, "kill-server"], capture_output=True, check=False)


def test_rows_are_chosen_by_every_word_and_what_goes_on_stands_first(two_runs, make_run, tmp_path):
    for number in (3, 4, 5):
        make_run(number, ended=True)
    found = RunWatcher(tmp_path / "runs").look_once()
    assert [row.status.job_id for row in chosen(found)] == ["2", "1", "5", "4", "3"]
    assert [row.status.job_id for row in chosen(found, "name2 COMPLETED")] == ["5"]
    assert chosen(found, "name1 pending") == []
    assert [row.status.job_id for row in chosen(found, active=True)] == ["2", "1"]
