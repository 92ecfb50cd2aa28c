"""`hpc-train top`: what it reads and how often, and what it is where no page can be shown."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from hpc_train.runs.events import EventKind
from hpc_train.top import run_watcher
from hpc_train.top.run_screen import RunScreen
from hpc_train.top.run_watcher import RunWatcher
from hpc_train.top.watched_run import chosen
from tests.cli.conftest import end, tell
from tests.cli.live_page import (
    _often,
    piloted,
    plan_json,
    rows,
    shown,
    two_runs,
    until,
)
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow

__all__ = ["_often", "plan_json", "two_runs"]


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


def test_what_slurm_did_not_answer_is_no_news_once_all_have_ended(two_runs, slurm, tmp_path):
    slurm.has("squeue", "exit 1")
    watched = RunWatcher(tmp_path / "runs")
    assert any("Slurm does not answer" in note for note in watched.look_once().notes)
    for run in two_runs:
        end(run, time.time())
    assert watched.look_once().notes == ()


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


def test_a_run_that_is_seen_while_it_is_made_is_shown_once_it_is_whole(slurm, make_run, tmp_path):
    made = make_run(1, ended=True)
    hidden = made.plan.rename(tmp_path / "plan.json")
    watcher = RunWatcher(tmp_path / "runs")
    for _ in range(3):
        snapshot = watcher.look_once()
        assert (snapshot.rows, len(snapshot.notes)) == ((), 2), "none that is whole"
    hidden.rename(made.plan)
    snapshot = watcher.look_once()
    assert [row.status.run for row in snapshot.rows] == [made.run_id]
    assert not snapshot.notes


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
