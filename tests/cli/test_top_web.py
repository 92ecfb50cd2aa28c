"""`hpc-train top --web`: read-only, for who has the token, with nothing from elsewhere."""

from __future__ import annotations

import asyncio
import html
import re
import socket
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp.test_utils import TestClient, TestServer

from hpc_train.top.run_watcher import RunWatcher
from hpc_train.top.web_page import application
from tests.cli.conftest import beats
from tests.cli.terminal import Terminal
from tests.training.launched import free_port

pytestmark = pytest.mark.slow

TOKEN = "the-token"


def asked(runs: Path, path: str = "/", *, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Status and text of one request; the token is in `path`."""

    async def body() -> tuple[int, str]:
        watch = RunWatcher(runs)
        watch.look_once()
        async with TestClient(TestServer(application(watch, TOKEN))) as client:
            answer = await client.request(method, path, headers=headers, allow_redirects=False)
            csp = answer.headers.get("Content-Security-Policy", "")
            assert answer.status != 200 or csp.startswith("default-src 'none'")
            return answer.status, await answer.text()

    return asyncio.run(body())


def page(runs: Path, query: str = "") -> str:
    status, text = asked(runs, f"/?token={TOKEN}{query}")
    assert status == 200
    return text


@pytest.mark.parametrize(
    "query",
    ["", "?token=", "?token=x", f"?token={TOKEN}x", f"?token={TOKEN[:-1]}", "?token=%C3%A9"],
)
def test_without_the_token_nothing_is_shown(slurm, make_run, tmp_path, query):
    run = make_run(1, ended=True)
    status, text = asked(tmp_path / "runs", f"/{query}")
    assert status == 403
    assert run.run_id not in text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost:9000", 200),  # through ssh -L
        ("localhost", 200),
        ("evil.example:8000", 403),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:80", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
def test_a_page_of_another_name_that_points_here_gets_nothing(slurm, tmp_path, host, status):
    (tmp_path / "runs").mkdir()
    assert asked(tmp_path / "runs", f"/?token={TOKEN}", Host=host)[0] == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(slurm, tmp_path, method):
    (tmp_path / "runs").mkdir()
    assert asked(tmp_path / "runs", f"/?token={TOKEN}", method=method)[0] == 405
    assert "cancel" not in page(tmp_path / "runs").lower()


def test_it_shows_what_the_terminal_shows_and_needs_nothing_from_elsewhere(
    slurm, make_run, tmp_path
):
    run, _ = make_run(1, ended=False), make_run(2, ended=True)
    beats(run, time=1.0, step=7, steps=9, steps_per_s=2.0, metrics={"loss": 0.5})
    slurm.says("1|RUNNING|None|N/A|N/A")
    text = page(tmp_path / "runs")
    assert "1 running, 0 pending, 1 ended" in text
    for word in ("7/9", "2.0 it/s", ">0.5<", run.run_id):
        assert word in text
    assert re.findall(r"(?:src|href|action)=[\"'](?!\?|data:,|\$)", text) == []
    for word in ("http://", "https://", "@import", "url("):
        assert word not in text
    assert slurm.asked() == 1


@pytest.mark.parametrize("name", ["<script>alert(1)<", "a\"b'c&d", "[red]", "a\x1b[2Jb"])
def test_every_name_is_text(slurm, make_run, tmp_path, name):
    run = make_run(1, ended=True)
    run.path.parent.rename(tmp_path / "runs" / name)
    moved = tmp_path / "runs" / name / run.run_id
    (moved / "attempts" / "0" / "rank-0.log").write_text("<img src=x onerror=alert(2)>\n")
    (moved / "attempts" / "0" / "rank-<b>.log").write_text("x\n")
    for text in (
        page(tmp_path / "runs"),
        page(tmp_path / "runs", f"&run={quote(str(moved))}"),
        page(tmp_path / "runs", f"&words={quote(name)}"),
        page(tmp_path / "runs", f"&run={quote(name)}&log={quote(name)}"),
    ):
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "<b>.log" not in text
        assert "\x1b" not in text
        assert name.replace("\x1b", " ") in html.unescape(text)


def test_a_run_is_opened_with_its_history_and_each_of_its_logs_and_no_other_file(
    slurm, make_run, tmp_path
):
    run = make_run(1, ended=True)
    run.attempt(0).rank_log(0).write_text("of rank zero\n")
    run.attempt(0).rank_log(1).write_text("of rank one\n")
    (tmp_path / "secret").write_text("not for anybody\n")
    opened = f"&run={quote(str(run.path))}"
    assert "of rank zero" in page(tmp_path / "runs", opened)
    assert "attempt 0" in page(tmp_path / "runs", opened)
    assert "of rank one" in page(tmp_path / "runs", f"{opened}&log=rank-1.log")
    for log in ("../../../../../secret", str(tmp_path / "secret"), "no-such"):
        text = page(tmp_path / "runs", f"{opened}&log={quote(log)}")
        assert "not for anybody" not in text
        assert "of rank zero" in text
    assert run.run_id in page(tmp_path / "runs", f"&run={quote(str(tmp_path))}")  # the table


def test_a_filter_finds_runs_behind_those_that_are_drawn(slurm, make_run, tmp_path):
    for number in range(205):
        make_run(number, ended=True)
    assert "the first 200 of 205" in page(tmp_path / "runs")
    text = page(tmp_path / "runs", "&words=name0+completed")
    assert text.count("<tr>") - 1 == 69


def served(tmp_path: Path, *words: str) -> tuple[Terminal, str]:
    terminal = Terminal("top", "--web", "--runs-dir", str(tmp_path / "runs"), *words, columns=200)
    terminal.until("\n")
    return terminal, terminal.text.strip()


def test_it_listens_on_this_machine_alone_tells_its_address_once_and_ends_with_ctrl_c(
    slurm, make_run, tmp_path
):
    make_run(1, ended=True)
    terminal, address = served(tmp_path)
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32,})", address)
    assert found
    with urllib.request.urlopen(address, timeout=30) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(address[:-1], timeout=30)
    listening = [
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{int(found[1]):04X}")
    ]
    assert listening == [f"0100007F:{int(found[1]):04X}"]
    assert found[2] not in Path(f"/proc/{terminal.process.pid}/cmdline").read_text()
    terminal.press("\x03")
    assert terminal.ends() == 0
    assert "Traceback" not in terminal.text
    assert terminal.text.count("token") == 1


def test_a_port_that_is_taken_is_one_line(slurm, make_run, tmp_path):
    make_run(1, ended=True)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        terminal, _ = served(tmp_path, "--port", str(port))
        assert terminal.ends() == 1
    assert terminal.text.split("\r\n")[0].startswith(f"error: --port {port}: ")
    assert "Traceback" not in terminal.text


def test_the_address_can_be_chosen(slurm, make_run, tmp_path):
    port = free_port()
    make_run(1, ended=True)
    terminal, address = served(tmp_path, "--port", str(port))
    assert address.startswith(f"http://127.0.0.1:{port}/")
    terminal.press("\x03")
    assert terminal.ends() == 0
