"""Notices that cannot be sent: a line in the log, no address in it, and the run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hpc_train.config.schema import NotifyConfig
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan
from hpc_train.runs.installed import install_command
from hpc_train.supervisor import run
from hpc_train.supervisor.send_notice import Notice, send
from tests.plan.configs import config
from tests.supervisor.told_runs import (
    DONE,
    ERROR,
    FAILED,
    TIMEOUT_S,
    ends_as,
    eventually,
    listening,
    made_run,
    settle,
    under_way,
)

from .channels import SECRET, Channel, channel

pytestmark = pytest.mark.slow

__all__ = ["listening"]


# --- a channel that is broken


def test_a_channel_that_hangs_costs_the_bound_and_a_line_and_the_other_one_gets_the_notice(
    listening: Channel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with channel(hangs=True) as stuck:
        monkeypatch.setenv("MY_CHANNELS", f"{stuck.url}\n{listening.url}")
        made = made_run(tmp_path, events=["end"], timeout_s=TIMEOUT_S)
        ends_as(monkeypatch, DONE)
        began = time.monotonic()
        assert run.supervise(made, {}, batch=False) == 0
        assert under_way(), "the run itself waits for nothing"
        settle()
        assert time.monotonic() - began < TIMEOUT_S + 40
    assert listening.titles == ["digits completed"]
    assert made.done.exists()
    (line,) = [line for line in capfd.readouterr().out.splitlines() if "notice" in line]
    assert line.endswith(
        "the notice of end was not sent: a channel gave no answer within 20 s;"
        " hpc-train notify CFG tries it"
    )


BROKEN = {
    "nonsense": "URL 1 of 1 is none that Apprise knows",
    f"slck://{SECRET}": "URL 1 of 1 is none that Apprise knows",
    f"json://me:{SECRET}@127.0.0.1:9/{SECRET}": "channel 1 of 1 (JSON) did not take it",
    f"json://{SECRET}.invalid/x": "channel 1 of 1 (JSON) did not take it",
    "  \n# a comment\n": "notify.urls_from: MY_CHANNELS is empty",
}


@pytest.mark.parametrize("urls", BROKEN)
def test_a_channel_that_cannot_be_reached_is_one_line_without_its_address(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    urls: str,
) -> None:
    monkeypatch.setenv("MY_CHANNELS", urls)
    made = made_run(tmp_path, events=["end"])
    ends_as(monkeypatch, DONE)
    assert run.supervise(made, {}, batch=False) == 0
    settle()
    said = capfd.readouterr()
    (line,) = [line for line in said.out.splitlines() if "notice" in line]
    assert BROKEN[urls] in line
    assert SECRET not in said.out + said.err


def test_a_channel_that_refuses_is_told_by_its_number_and_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with channel(status=500) as refuses, channel() as takes:
        monkeypatch.setenv("MY_CHANNELS", f"{takes.url} {refuses.url}")
        notify = NotifyConfig(urls_from="MY_CHANNELS", timeout_s=TIMEOUT_S)
        sent = send(notify, Notice("title", "text"))
    assert (sent.channels, sent.troubles) == (2, ("channel 2 of 2 (JSON) did not take it",))
    assert any("500" in line for line in sent.said)
    assert len(takes.came) == 1


def test_without_apprise_the_run_goes_on_and_the_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "apprise.py").write_text("raise ImportError('no such module')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "none"))
    monkeypatch.setenv("MY_CHANNELS", "json://127.0.0.1")
    ends_as(monkeypatch, DONE)
    assert run.supervise(made_run(tmp_path, events=["end"]), {}, batch=False) == 0
    settle()
    assert f"not installed ({install_command(extra='notices')})" in capfd.readouterr().out


@pytest.mark.parametrize("source", ["NOT_SET", "/no/such/file", "~nobody-here/x"])
def test_addresses_that_are_not_there_cost_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    source: str,
) -> None:
    ends_as(monkeypatch, DONE)
    assert run.supervise(made_run(tmp_path, urls_from=source), {}, batch=False) == 0
    settle()
    assert f"notify.urls_from: {source}" in capfd.readouterr().out


# --- secrets, and the user's own folder


def test_no_address_is_written_anywhere_and_modules_of_the_user_are_not_taken_for_apprises(
    listening: Channel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "requests.py").write_text("raise SystemExit('mine')\n")
    monkeypatch.chdir(work)
    file = tmp_path / "urls"
    file.write_text(f"# chat\n{listening.url}\n")
    made = made_run(tmp_path, urls_from=str(file))
    ends_as(monkeypatch, FAILED, error=ERROR)
    run.supervise(made, {}, batch=False)
    settle()
    assert eventually(listening, 2) == ["digits began", "digits failed"]
    said = capfd.readouterr()
    written = [path.read_text("utf-8") for path in made.path.rglob("*") if path.is_file()]
    assert written
    assert [text for text in (*written, said.out, said.err) if SECRET in text] == []


def test_a_plan_of_before_there_were_notices_is_read_and_tells_nobody() -> None:
    plan = make_plan(config(), workdir="/w", python="python3")
    assert '"notify"' not in plan.to_json()
    assert Plan.from_json(plan.to_json()) == plan


def test_a_sigterm_to_every_process_of_the_job_does_not_end_the_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As Slurm sends it when the supervisor has requeued its job."""
    with channel(hangs=True) as slow:
        monkeypatch.setenv("MY_CHANNELS", slow.url)
        ends_as(monkeypatch, DONE)
        made = made_run(tmp_path, events=["end"], timeout_s=20.0)
        assert run.supervise(made, {}, batch=False) == 0
        (thread,) = under_way()
        deadline = time.monotonic() + 60
        while not (found := senders()) and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(found[0], signal.SIGTERM)
        thread.join()
    assert "a channel gave no answer within 20 s" in capfd.readouterr().out
    assert senders() == []


def senders() -> list[int]:
    """Processes of this one that send a notice."""
    told = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "send_notice"], capture_output=True, check=False
    )
    return [int(word) for word in told.stdout.split()]
