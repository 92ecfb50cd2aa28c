"""`hpc-train report`: on terminals of any width, as data, as a page; runs in any state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hpc_train.report.page import render_page
from hpc_train.runs.events import EventKind
from tests.cli.conftest import on_terminal
from tests.report.made import MadeRun, gpu_line, make_run, night

HOSTILE = "<script>alert(1)</script>\"'&"
NIGHT = "step,loss,val_loss\n" + "".join(f"{n},{5 / (n + 1)},\n" for n in range(1000))


@pytest.fixture
def made(tmp_path: Path) -> MadeRun:
    run = make_run(tmp_path, slurm={"mem": "256G"})
    night(run)
    run.metrics(NIGHT)
    for node in run.nodes:
        run.watch(node, [gpu_line(5 * n) for n in range(50)])
    return run


def page_of(made: MadeRun, *others: MadeRun) -> str:
    return render_page([run.report() for run in (made, *others)])


class Reader(HTMLParser):
    """The elements of a page, and what is text in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_terminal_tells_ends_causes_goodput_and_what_to_change(hpc, slurm, made) -> None:
    said = hpc("report", str(made.run.path))
    assert said.code == 0, said.err
    assert "\x1b" not in said.out, "no colour in a pipe"
    for words in (
        "hang after 3 min 20 s",
        "rank 3 on n1 did not reach the all-reduce of step 401",
        "steps 200 to 400, 40 lost",
        "goodput  56 % of the wall time",
        "--time 0:15:00",
        "slurm.mem=26G",
    ):
        assert words in said.out
    assert re.search(r"^  lost +█.* 1 min 20 s +8.8 %", said.out, re.MULTILINE)
    assert re.search(r"^  loss +[▁-█]{20,} 0.005", said.out, re.MULTILINE)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(slurm, made, columns: int) -> None:
    shown = on_terminal("report", str(made.run.path), columns=columns)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown.splitlines()]
    assert max(map(len, lines)) <= columns
    assert any("40 lost" in line for line in lines)
    assert "\x1b[" in shown


def test_the_newest_run_is_meant_without_one_and_none_is_said(hpc, slurm, made) -> None:
    assert hpc("report").out.startswith("digits  completed")
    Path("empty").mkdir()
    nothing = hpc("report", "--runs-dir", "empty")
    assert (nothing.code, "no runs in " in nothing.err) == (5, True)
    absent = hpc("report", "--runs-dir", "elsewhere")
    assert (absent.code, "elsewhere" in absent.err) == (5, True)
    assert hpc("report", "nope").code == 5


def test_data_is_json_without_nan_and_the_shares_are_in_it(hpc, slurm, made) -> None:
    made.metrics("step,loss\n0,1.0\n1,nan\n")
    document = json.loads(
        hpc("report", "--json", str(made.run.path)).out, parse_constant=pytest.fail
    )
    assert document["schema_version"] == 1
    (run,) = document["runs"]
    assert run["goodput"]["wall_s"] == pytest.approx(sum(run["goodput"]["seconds"].values()))
    assert run["series"][0]["bad"] == 1
    assert [it["outcome"] for it in run["attempts"]] == ["preempted", "hang", "completed"]


def test_several_runs_are_put_side_by_side_with_their_scaling(hpc, slurm, made, tmp_path) -> None:
    other = make_run(tmp_path, nodes=("n1",), number=1)
    other.end(other.attempt(0, 5, steps=(0, 100)))
    said = json.loads(hpc("report", "--json", str(made.run.path), str(other.run.path)).out)
    two, one = said["compared"]
    assert (two["ranks"], one["ranks"]) == (8, 4)
    assert one["efficiency"] == 1
    assert two["efficiency"] == pytest.approx(two["samples_per_s"] / one["samples_per_s"] / 2)
    shown = hpc("report", str(made.run.path), str(other.run.path)).out.splitlines()
    assert shown[-3].split()[:3] == ["RUN", "STATE", "RANKS"]
    page = Reader(page_of(made, other))
    assert "Side by side" in page.text


def test_a_page_needs_nothing_else_and_has_each_number_in_a_table(made) -> None:
    page = page_of(made)
    reader = Reader(page)
    assert all(link.startswith(("#", "data:")) for link in reader.links)
    assert {"script", "iframe", "img"}.isdisjoint(reader.tags)
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "url(" not in page
    text = " ".join(reader.text)
    assert "rank 3 on n1 did not reach the all-reduce" in text
    assert "1 min 20 s" in text
    assert reader.tags.count("svg") == 2
    assert reader.tags.count("table") >= 7


def test_what_a_run_says_of_itself_is_text_and_never_markup(tmp_path: Path) -> None:
    made = make_run(tmp_path, name=HOSTILE, nodes=(HOSTILE,))
    made.end(made.attempt(0, 5, steps=(0, 100), outcome="user_error", reason=HOSTILE), "failed")
    made.metrics(f'step,"{HOSTILE.replace(chr(34), chr(34) * 2)}"\n0,1\n1,2\n')
    made.run.environment.write_text(json.dumps({"git_commit": HOSTILE, "git_diff": HOSTILE}))
    other = make_run(tmp_path, name=HOSTILE, number=1)
    for page in (page_of(made), page_of(made, other)):
        assert "<script" not in page
        assert "".join(Reader(page).text).count(HOSTILE) >= 6


def test_a_pattern_means_all_runs_of_these_names(hpc, slurm, made) -> None:
    document = json.loads(hpc("report", "dig*", "--json").out)
    assert [Path(run["run_dir"]) for run in document["runs"]] == [made.run.path]
    for command in ("status", "logs", "cancel"):
        said = hpc(command, "dig*")
        assert (said.code, "fix: one at a time: digits" in said.err) == (5, True)
    assert hpc("report", "nope*").code == 5


def test_a_page_that_cannot_be_written_is_one_line(hpc, slurm, made) -> None:
    said = hpc("report", str(made.run.path), "--html", "/proc/none/page.html")
    assert said.code == 2
    assert said.err.startswith("error: --html /proc/none/page.html cannot be written\n  fix: ")
    assert "<!doctype html>" in hpc("report", str(made.run.path), "--html", "-").out
    assert not Path("-").exists()
    assert hpc("report", str(made.run.path), "--html", "page.html").out == "written: page.html\n"
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_a_history_that_cannot_be_read_is_one_line(hpc, slurm, made) -> None:
    made.run.events.unlink()
    made.run.events.mkdir()  # root reads whatever there is, but no folder as a file
    said = hpc("report", str(made.run.path))
    assert said.code == 1
    assert said.err.startswith(f"error: {made.run.events} cannot be read: ")


def without_attempt(made: MadeRun) -> str:
    return "no attempt has begun yet"


def without_end(made: MadeRun) -> str:
    made.attempt(0, 5, steps=(0, 100), outcome=None)
    return "no metrics: there is no metrics.csv"


def half_deleted(made: MadeRun) -> str:
    ended = made.attempt(0, 5, steps=(0, 100))
    made.end(ended)
    for path in sorted(made.run.attempts.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    return "no throughput over time: rank 0 left no progress"


def of_another_version(made: MadeRun) -> str:
    made.end(made.attempt(0, 5, steps=(0, 100), seconds=False))
    made.run.plan.write_text('{"schema_version": 99}')
    return "plan.json cannot be read: schema_version 99"


def torn(made: MadeRun) -> str:
    made.attempt(0, 5, steps=(0, 100), outcome=None)
    with made.run.events.open("ab") as stream:
        stream.write(b'{"time": 3, "event": "attempt_en\xff\n[]\n{"time": 9, "event": "new"}\n{"ti')
    (made.run.attempt(0).heartbeat(0)).write_text('{"rank": 0')
    made.run.attempt(0).progress.write_text('{"time": 1}\nx\n{"time": "a", "step": 2}\n[]\n')
    return "no throughput over time"


def strange_fields(made: MadeRun) -> str:
    made.tell(5, EventKind.ATTEMPT_STARTED, attempt=0)
    made.tell(6, EventKind.PREFLIGHT, attempt=0, seconds="soon")
    made.tell(7, EventKind.ATTEMPT_ENDED, attempt=0, outcome="completed")
    made.run.environment.write_text("[1, 2]")
    return "no node was watched: monitor/ is empty"


def of_a_session(made: MadeRun) -> str:
    made.run.plan.unlink()
    made.run.session.write_text("python train.py")
    made.run.events.unlink()
    made.tell(0, EventKind.SUBMITTED, backend="session")
    made.end(made.attempt(0, 5, steps=(0, 100)))
    return "no plan: a script with a Session"


@pytest.mark.parametrize(
    "make",
    [
        without_attempt,
        without_end,
        half_deleted,
        of_another_version,
        torn,
        strange_fields,
        of_a_session,
    ],
)
def test_a_run_in_any_state_is_reported_and_what_is_missing_said(
    hpc,
    slurm,
    tmp_path: Path,
    make: Callable[[MadeRun], str],
) -> None:
    made = make_run(tmp_path)
    slurm.says("7|PENDING|Priority|N/A" if make is without_attempt else "7|RUNNING|None|N/A")
    missing = make(made)
    path = made.run.path
    if make is of_a_session:  # its folder is where its script says
        path = path.rename(tmp_path / "session")
    said = hpc("report", str(path))
    assert said.code == 0, said.err
    assert missing in " ".join(said.out.split())
    json.loads(hpc("report", "--json", str(path)).out)
    assert hpc("report", str(path), "--html", "x.html").code == 0
    text = " ".join("".join(Reader(Path("x.html").read_text()).text).split())
    assert missing in text
