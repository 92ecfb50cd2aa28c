"""The pages in Chromium: axe-core's rules, both themes, a phone, the keyboard, a silent console."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hpc_train.report.page import render_bench, render_page
from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import beats, end, tell
from tests.cli.terminal import Terminal
from tests.cli.test_top_web import served
from tests.report.made import gpu_line, night
from tests.report.made import make_run as made_run
from tests.report.test_bench_table import table_of, took

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium here")

HOSTILE = "<script>alert(1)</script>"
LONG = "rank 3 on node07: RuntimeError: " + "CUDA error: an illegal memory access was met " * 12
PATH_LIKE = "/scratch/" + "a-folder-without-a-blank-" * 12
PHONE, DESK = 360, 1280
# Where a person who develops the pages looks at them.
SHOTS = os.environ.get("HPC_TRAIN_SCREENSHOTS")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@contextmanager
def opened(
    chromium: Any, address: str, width: int = DESK, theme: str = "light", *, but: str = "-"
) -> Iterator[Any]:
    """A page in a window of its own; at the end its console has said nothing BUT this."""
    page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
    page.set_default_timeout(60_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    page.on("request", lambda it: it.url.startswith(address[:20]) or wrong.append(it.url))
    with closing(page):
        page.goto(address)
        yield page
    assert [it for it in wrong if but not in it] == []


def judge(chromium: Any, address: str, name: str) -> None:
    """What holds of every page, on a desk and on a phone, by day and by night."""
    for width in (DESK, PHONE):
        for theme in ("light", "dark"):
            with opened(chromium, address, width, theme) as page:
                if SHOTS:
                    page.screenshot(path=f"{SHOTS}/{name}-{width}-{theme}.png", full_page=True)
                found = axe.Axe().run(page)
                assert found.violations_count == 0, found.generate_report()
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{wide} px in a window of {width}"
                shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert shown == ("rgb(255, 255, 255)" if theme == "light" else "rgb(13, 17, 23)")


@contextmanager
def top(folder: Path) -> Iterator[tuple[Terminal, str]]:
    """`hpc-train top --web`, and the address that it prints."""
    (folder / "runs").mkdir(exist_ok=True)
    terminal, address = served(folder)
    try:
        yield terminal, address
    finally:
        terminal.press("\x03")
        assert terminal.ends() == 0
    assert "Traceback" not in terminal.text


def failed(run: RunDir, reason: str) -> None:
    """It has ended so, with a log of long lines."""
    at = time.time() - 100
    told = {"outcome": "user_error", "last_step": 7, "saved_step": 7, "reason": reason}
    tell(run, at, EventKind.ATTEMPT_ENDED, attempt=0, **told)
    tell(run, at, EventKind.RUN_ENDED, attempt=0, state="failed", reason="user_error")
    run.attempt(0).rank_log(0).write_text(f"{HOSTILE}\n{PATH_LIKE}\n{LONG}\n" * 9)


@pytest.fixture
def many(slurm, make_run) -> list[RunDir]:
    """200 that have ended, one that trains, one that waits and one that failed; names to fear."""
    runs = [make_run(number, ended=True) for number in range(200)]
    trains, waits, fails = (make_run(200 + number, ended=False) for number in range(3))
    told = {"step": 7, "steps": 90, "steps_per_s": 2.0, "metrics": {"train_loss": 0.25}}
    beats(trains, time=time.time(), **told)
    waits.events.write_text(waits.events.read_text().splitlines()[0] + "\n")
    failed(fails, LONG)
    named = runs[0].path.parent.rename(runs[0].path.parents[1] / "<script>alert(1)<")
    slurm.says("200|RUNNING|None|N/A|N/A", "201|PENDING|Priority|N/A|N/A")
    return [
        RunDir(named / run.run_id) if run.path.parent.name == "name0" else run
        for run in (trains, waits, fails)
    ]


@pytest.mark.parametrize("count", [0, 1])
def test_top_without_a_run_and_with_one(slurm, make_run, chromium, tmp_path, count):
    for number in range(count):
        make_run(number, ended=True)
    with top(tmp_path) as (_, address):
        judge(chromium, address, f"top-{count}")


def test_top_with_many_runs_and_each_of_them(many, chromium, tmp_path):
    with top(tmp_path) as (_, address):
        judge(chromium, address, "top-many")
        for run, name in zip(many, ("trains", "waits", "failed"), strict=True):
            judge(chromium, f"{address}&run={quote(str(run.path))}", f"top-{name}")


def test_top_needs_no_mouse(many, chromium, tmp_path):
    with top(tmp_path) as (_, address), opened(chromium, address, PHONE) as page:
        page.keyboard.press("Tab")
        page.keyboard.type("failed")
        page.keyboard.press("Enter")
        page.wait_for_url("**words=failed**")
        assert page.locator("tbody tr").count() == 1
        tab_to(page, "a")
        page.keyboard.press("Enter")
        page.wait_for_selector("h1 >> text=failed")
        tab_to(page, "[aria-label='the end of rank-0.log']")
        tab_to(page, "a", key="Shift+Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("tbody tr >> nth=199")


def tab_to(page: Any, element: str, *, key: str = "Tab") -> None:
    """Go there with the keyboard, where one can see that one is."""
    for _ in range(20):
        page.keyboard.press(key)
        page.evaluate("new Promise(requestAnimationFrame)")  # else the next key may come before it
        if page.evaluate("of => document.activeElement.matches(of)", element):
            break
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert page.evaluate("of => document.activeElement.matches(of)", element)
    assert style not in ("none", "hidden")


def test_top_is_drawn_anew_under_the_keyboard_and_says_when_nobody_answers(
    many, chromium, tmp_path
):
    trains, *_ = many
    with top(tmp_path) as (terminal, address):
        run = f"{address}&run={quote(str(trains.path))}"
        with opened(chromium, run, but="ERR_CONNECTION_REFUSED") as page:
            tab_to(page, "[aria-label=history]")
            end(trains, time.time())
            page.wait_for_selector("h1 >> text=completed")
            assert page.evaluate("document.activeElement.ariaLabel") == "history"
            assert page.locator("#gone").is_hidden()
            terminal.press("\x03")
            page.wait_for_selector("#gone")
            assert "what follows is old" in page.locator("#gone").inner_text()


DIVISORS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
SHAPES = {
    "none": {1: None, 2: None},
    "one": {1: took(0.3, data_s=0.1, comm_s=0.0, save_s=0.01)},
    "many": {n: took(0.3 / n**0.8, data_s=0.02, comm_s=0.01, save_s=0.01) for n in DIVISORS},
}


@pytest.mark.parametrize("shapes", SHAPES)
def test_the_page_of_a_bench(chromium, tmp_path, monkeypatch, shapes):
    named = {n: {"data.init_args.root": HOSTILE, "env.variables.X": PATH_LIKE} for n in (2, 3)}
    made = table_of({**SHAPES[shapes], 96: None}, {**named, 96: {"seed": 1}})
    rows = [replace(row, why=row.why and f"failed: {LONG} {PATH_LIKE}") for row in made.rows]
    table = replace(made, training=HOSTILE, rows=tuple(rows))
    file = tmp_path / "bench.html"
    file.write_text(render_bench(table))
    judge(chromium, file.as_uri(), f"bench-{shapes}")
    with opened(chromium, file.as_uri()) as page:
        assert page.title() == f"Bench of {HOSTILE}"


def test_the_page_of_a_run_and_of_two_side_by_side(chromium, tmp_path):
    runs = [made_run(tmp_path, name=HOSTILE, slurm={"mem": "256G"}, number=n) for n in range(2)]
    for run in runs:
        night(run)
        run.metrics("step,loss,val_loss\n" + "".join(f"{n},{5 / (n + 1)},\n" for n in range(1000)))
        for node in run.nodes:
            run.watch(node, [gpu_line(5 * n) for n in range(50)])
    file = tmp_path / "report.html"
    for shown in (runs[:1], runs):
        file.write_text(render_page([run.report() for run in shown]))
        judge(chromium, file.as_uri(), f"report-{len(shown)}")
    with opened(chromium, file.as_uri()) as page:
        tab_to(page, ".skip")
        page.keyboard.press("Enter")
        tab_to(page, "summary")
        page.keyboard.press("Enter")
        assert page.locator("details[open]").count() == 1
