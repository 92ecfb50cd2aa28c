"""Notices: a real server is the channel, Apprise is real; the ranks are made up here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.backends.observe import observe
from hpc_train.config.schema import NotifyConfig
from hpc_train.diagnose.read_run import sentence_of
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import Outcome
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import ExitRecord, Heartbeat, write_exit, write_heartbeat
from hpc_train.supervisor import run
from hpc_train.supervisor.allocation import Allocation
from hpc_train.supervisor.attempt import Attempt, AttemptResult, new_attempt
from hpc_train.supervisor.notices import StragglerWatch, notify_of_start, preempted_often
from hpc_train.supervisor.outcome import AttemptOutcome
from hpc_train.supervisor.progress import attempt_steps, record_end
from hpc_train.supervisor.send_notice import Notice, send
from hpc_train.supervisor.signals import SupervisorSignals
from hpc_train.supervisor.stopcause import StopCause
from hpc_train.supervisor.supervisor_log import SupervisorLog
from tests.plan.configs import config
from tests.report.made import gpu_line

from .channels import SECRET, Channel, channel
from .test_attempt_ended import _signals_are_put_back

pytestmark = pytest.mark.slow

__all__ = ["_signals_are_put_back"]

# Apprise takes 0.2 s here, and longer where many tests run; a bound is this and some seconds.
TIMEOUT_S = 20.0
SHORT_S = 3.0


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[Channel]:
    with channel() as made:
        monkeypatch.setenv("MY_CHANNELS", made.url)
        yield made


def made_run(folder: Path, *, urls_from: str = "MY_CHANNELS", **notify: object) -> RunDir:
    directory = RunDir(folder / "digits" / "20261122-100000-ab12")
    directory.path.mkdir(parents=True)
    told = NotifyConfig(**{"urls_from": urls_from, "timeout_s": TIMEOUT_S, **notify})  # type: ignore[arg-type]
    plan = make_plan(config(notify=told), workdir=folder, python="python3")
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    return directory


def ends_as(monkeypatch: pytest.MonkeyPatch, *ends: AttemptOutcome, error: str = "") -> None:
    """The attempts of the next supervisor."""
    left = iter(ends)

    def made_up(attempt: Attempt) -> AttemptResult:
        if error:
            record = ExitRecord(
                rank=1, node="n2", code=1, time=time.time(), error=error,
                traceback=f"Traceback (most recent call last):\n{error}\n",
            )  # fmt: skip
            write_exit(attempt.folder, record)
        notify_of_start(attempt)
        ending = next(left)
        steps = attempt_steps(attempt.run, attempt.number, assumed_first=0)
        record_end(attempt.run, attempt.number, ending, steps)
        return AttemptResult(ending, StopCause(None))

    monkeypatch.setattr(run, "_check_and_train", made_up)


DONE = AttemptOutcome(outcome=Outcome.COMPLETED, reason="all ranks finished")
HANG = AttemptOutcome(outcome=Outcome.HANG, reason="nothing moved")
ERROR = "ModuleNotFoundError: No module named 'albumentations'"
FAILED = AttemptOutcome(
    outcome=Outcome.USER_ERROR, reason=f"rank 1 on n2 failed: {ERROR}", rank=1, node="n2"
)


def settle() -> None:
    """Wait for the notices under way, as the supervisor's process does at its end."""
    for thread in under_way():
        thread.join()


def under_way() -> list[threading.Thread]:
    """Threads that a process waits for at its end."""
    return [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread()
    ]


def eventually(listening: Channel, count: int) -> list[str]:
    """The titles, once so many have come: the start is told beside the run."""
    deadline = time.monotonic() + 60
    while len(listening.came) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    return sorted(listening.titles)


# --- what is told


def test_a_run_tells_its_start_and_its_end_once_whatever_is_in_between(
    listening: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_run(tmp_path)
    ends_as(monkeypatch, HANG, DONE)
    assert run.supervise(made, {}, batch=False) == 0
    settle()
    assert eventually(listening, 2) == ["digits began", "digits completed"]
    end = next(notice for notice in listening.came if "completed" in notice["title"])
    assert end["message"].startswith(
        "digits (20261122-100000-ab12) is completed: the training is complete\nstep 0, attempt 1"
    )
    assert "hpc-train status 20261122-100000-ab12" in end["message"]


def test_a_failure_carries_the_words_of_status_and_the_sentence_of_diagnose(
    listening: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_run(tmp_path, events=["failure"])
    ends_as(monkeypatch, FAILED, error=ERROR)
    assert run.supervise(made, {}, batch=False) != 0
    settle()
    assert listening.titles == ["digits failed"]
    (status,) = observe([made], time.time())
    sentence = sentence_of(made, status)
    assert "albumentations" in sentence
    message = listening.came[0]["message"]
    assert f"is failed: {status.reason}\ncause: {sentence}\n" in message
    assert "hpc-train diagnose 20261122-100000-ab12" in message


@pytest.mark.parametrize(("events", "count"), [(["end"], 1), (["failure"], 0), ([], 0)])
def test_only_what_the_config_names_is_told(
    listening: Channel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    events: list[str],
    count: int,
) -> None:
    ends_as(monkeypatch, DONE)
    assert run.supervise(made_run(tmp_path, events=events), {}, batch=False) == 0
    settle()
    assert len(listening.came) == count


HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("hours", "told"),
    [
        ([], []),
        ([1, 2], []),
        ([1, 2, 3], [3]),
        ([1, 2, 3, 4, 5], [3]),  # once a day
        ([1, 2, 30, 40], []),
        ([1, 10, 24.9], [24.9]),
        ([1, 10, 25], []),  # the first one is a day ago
        ([1, 2, 3, 26, 27, 28], [3, 28]),
        ([3, 2, 1], []),  # a clock that went back: nothing is said of the future
    ],
)
def test_the_third_preemption_in_a_day_is_news_once_a_day(
    hours: list[float], told: list[float]
) -> None:
    records = [
        AttemptRecord(
            attempt=n, job_id="7", started=0.0, ended=hour * HOUR_S, outcome=Outcome.PREEMPTED
        )
        for n, hour in enumerate(hours)
    ]
    news = [hours[n] for n in range(len(hours)) if preempted_often(records[: n + 1])]
    assert news == told
    other = AttemptRecord(attempt=99, job_id="7", started=0.0, ended=9e9, outcome=Outcome.HANG)
    assert not preempted_often([*records, other])


def test_the_third_preemption_is_told_while_the_run_goes_on(
    listening: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_run(tmp_path, events=["preemptions"])
    now = time.time()
    for number in (0, 1):
        for kind, more in (
            (EventKind.ATTEMPT_STARTED, {"job_id": "7", "nodes": ["n1"]}),
            (EventKind.ATTEMPT_ENDED, {"outcome": "preempted", "saved_step": 10 * number + 10}),
        ):
            append_event(made.events, Event(now - 100, kind, {"attempt": number, **more}))
    preempted = AttemptOutcome(outcome=Outcome.PREEMPTED, reason="a job of higher priority")
    (made.checkpoints / "step-000000030").mkdir(parents=True)
    (made.checkpoints / "step-000000030" / "manifest.json").write_text("{}")
    ends_as(monkeypatch, preempted, DONE)
    assert run.supervise(made, {}, batch=False) == 0
    settle()
    assert listening.titles == ["digits was preempted 3 times in 24 h"]
    assert "is pending: preempted: goes on from step 30" in listening.came[0]["message"]


def watched(tmp_path: Path, uses: list[float], *, phase: str = "train") -> Attempt:
    """An attempt while its nodes are monitored."""
    made = made_run(tmp_path)
    plan = Plan.from_json(made.plan.read_text(encoding="utf-8"))
    place = Allocation(backend="slurm", job_id="7", nodes=("n0",))
    attempt = new_attempt(plan, place, made, {}, SupervisorSignals(), SupervisorLog())
    now = time.time()
    beat = Heartbeat(rank=0, node="n0", pid=1, time=now, moved=now, phase=phase, step=9, batch=9)
    write_heartbeat(attempt.folder, beat)
    made.monitor.mkdir()
    for number, use in enumerate(uses):
        lines = [json.dumps(gpu_line(5 * n, use if n > 20 else 95.0)) for n in range(200)]
        (made.monitor / f"n{number}.jsonl").write_text("\n".join(lines) + "\n")
    return attempt


@pytest.mark.parametrize(("count", "said"), [(1, "n0"), (2, "n[0-1]"), (64, "n[0-63]")])
def test_the_start_names_all_of_its_nodes(
    listening: Channel, tmp_path: Path, count: int, said: str
) -> None:
    attempt = watched(tmp_path, [])
    told = {"attempt": 0, "job_id": "7", "nodes": [f"n{number}" for number in range(count)]}
    append_event(attempt.run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, told))
    notify_of_start(attempt)
    assert eventually(listening, 1) == ["digits began"]
    assert f" began on {said} as job 7\n" in listening.came[0]["message"]


def test_a_straggler_is_told_once_an_attempt_with_what_differs(
    listening: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = StragglerWatch(watched(tmp_path, [96, 41, 95, 97]), window_s=300)
    looks.compare()
    looks.compare()
    assert eventually(listening, 1) == ["digits: n1 is a straggler"]
    assert "n1 differs from the other nodes for 5 min:" in listening.came[0]["message"]
    assert "GPU 41 % (the others 96 %)" in listening.came[0]["message"]
    assert capsys.readouterr().out.count("n1 differs") == 1


def test_the_nodes_are_compared_once_they_have_trained_for_a_while(
    listening: Channel, tmp_path: Path
) -> None:
    looks = StragglerWatch(watched(tmp_path, [96, 41, 95, 97]), window_s=300)
    looks.look()
    settle()
    assert (listening.came, looks.told) == ([], set())
    looks.look_at = 0
    looks.look()
    assert eventually(listening, 1) == ["digits: n1 is a straggler"]
    assert looks.look_at > time.monotonic()


@pytest.mark.parametrize(
    ("uses", "phase"), [([96, 95, 97], "train"), ([96, 41], "train"), ([96, 41, 95, 97], "save")]
)
def test_nodes_that_are_alike_two_nodes_and_a_save_are_no_straggler(
    tmp_path: Path, uses: list[float], phase: str, capsys: pytest.CaptureFixture[str]
) -> None:
    StragglerWatch(watched(tmp_path, uses, phase=phase), window_s=300).compare()
    assert "differs" not in capsys.readouterr().out


def test_a_node_of_an_earlier_attempt_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = watched(tmp_path, [96, 41, 95, 97])
    os.utime(attempt.run.monitor / "n1.jsonl", (1e9, 1e9))
    StragglerWatch(attempt, window_s=300).compare()
    assert "differs" not in capsys.readouterr().out


# --- a channel that is broken


def test_a_channel_that_hangs_costs_the_bound_and_a_line_and_the_other_one_gets_the_notice(
    listening: Channel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with channel(hangs=True) as stuck:
        monkeypatch.setenv("MY_CHANNELS", f"{stuck.url}\n{listening.url}")
        made = made_run(tmp_path, events=["end"], timeout_s=SHORT_S * 2)
        ends_as(monkeypatch, DONE)
        began = time.monotonic()
        assert run.supervise(made, {}, batch=False) == 0
        assert under_way(), "the run itself waits for nothing"
        settle()
        assert time.monotonic() - began < SHORT_S * 2 + 10
    assert listening.titles == ["digits completed"]
    assert made.done.exists()
    (line,) = [line for line in capfd.readouterr().out.splitlines() if "notice" in line]
    assert line.endswith(
        "the notice of end was not sent: a channel gave no answer within 6 s;"
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
    assert "not installed (pip install 'hpc-train[notices]')" in capfd.readouterr().out


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
        made = made_run(tmp_path, events=["end"], timeout_s=5.0)
        assert run.supervise(made, {}, batch=False) == 0
        (thread,) = under_way()
        deadline = time.monotonic() + 60
        while not (found := senders()) and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(found[0], signal.SIGTERM)
        thread.join()
    assert "a channel gave no answer within 5 s" in capfd.readouterr().out
    assert senders() == []


def senders() -> list[int]:
    """Processes of this one that send a notice."""
    told = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "send_notice"], capture_output=True, check=False
    )
    return [int(word) for word in told.stdout.split()]
